pj
locationdata/none.bin