pj-
location!data/../../valid/data/weights.bin