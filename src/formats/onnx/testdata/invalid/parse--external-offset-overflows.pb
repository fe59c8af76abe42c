pj
locationdata/weights.binj
offset18446744073709551615j
length8