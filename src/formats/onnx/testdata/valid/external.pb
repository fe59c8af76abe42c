pj
locationdata/weights.binj
offset16j
length8j4
checksum(0000000000000000000000000000000000000000