pj
locationdata