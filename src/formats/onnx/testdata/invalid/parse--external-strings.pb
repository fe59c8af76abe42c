pj
locationdata/weights.bin