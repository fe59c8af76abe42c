pj
locationdata/link.bin