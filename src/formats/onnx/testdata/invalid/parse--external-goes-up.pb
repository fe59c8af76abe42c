pj%
location../valid/data/weights.bin