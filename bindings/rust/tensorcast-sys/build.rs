// SPDX-License-Identifier: Apache-2.0
// Links libtensorcast, which has the other components inside: of the folder of TENSORCAST_LIB_DIR, or what pkg-config says.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=TENSORCAST_LIB_DIR");
    println!("cargo:rustc-link-lib=dylib=tensorcast");
    if let Ok(folder) = env::var("TENSORCAST_LIB_DIR") {
        println!("cargo:rustc-link-search=native={folder}");
        return;
    }
    let found = Command::new("pkg-config").args(["--variable=libdir", "tensorcast"]).output();
    match found {
        Ok(output) if output.status.success() => {
            println!("cargo:rustc-link-search=native={}", String::from_utf8_lossy(&output.stdout).trim());
        }
        _ => panic!("libtensorcast was not found: install it, or name its folder in TENSORCAST_LIB_DIR"),
    }
}
