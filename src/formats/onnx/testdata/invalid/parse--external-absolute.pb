pj
location/etc/passwd