pj
locationdata/weights.binj
offset4j
length8