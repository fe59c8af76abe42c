pj
locationdata/weights.binj
offset24