pj
locationdata/weights.binj
length4