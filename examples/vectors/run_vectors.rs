// SPDX-License-Identifier: Apache-2.0
//! Runs an implementation on the number vectors of docs/vectors.md: rustc -O run_vectors.rs && ./run_vectors FILE...
//! Replace `convert` by a call of your own implementation; here it is `as` of Rust, whose floats saturate to integers.
//! Exit status 1: something failed.
use std::{env, fs, process};

struct Case<'a> {
    source: &'a str,
    code: u64,
    target: &'a str,
    /// "rounding=to_odd,saturate=false"; "-": the defaults of docs/vectors.md.
    options: &'a str,
}

/// Whole numbers of 8 to 64 bits and both floats of Rust, as the widest type of their kind.
enum Number {
    Integer(i128),
    Single(f32),
    Double(f64),
}

fn number(case: &Case) -> Option<Number> {
    Some(match case.source {
        "int8" => Number::Integer((case.code as i8).into()),
        "int16" => Number::Integer((case.code as i16).into()),
        "int32" => Number::Integer((case.code as i32).into()),
        "int64" => Number::Integer((case.code as i64).into()),
        "uint8" | "uint16" | "uint32" | "uint64" => Number::Integer(case.code.into()),
        "float32" => Number::Single(f32::from_bits(case.code as u32)),
        "float64" => Number::Double(f64::from_bits(case.code)),
        _ => return None,
    })
}

/// One whole number type as the target: integers wrap with `as`, floats saturate.
macro_rules! whole {
    ($number:expr, $type:ty, $code:ty) => {
        match $number {
            Number::Integer(x) => x as $type as $code as u64,
            Number::Single(x) => x as $type as $code as u64,
            Number::Double(x) => x as $type as $code as u64,
        }
    };
}

/// The target's code; None: there is no such conversion here.
fn convert(case: &Case) -> Option<u64> {
    let x = number(case)?;
    let to_whole = case.target.contains("int");
    let from_whole = matches!(x, Number::Integer(_));
    let is_supported = match case.options {
        "-" => !to_whole || from_whole,
        "out_of_range=saturate" => to_whole && !from_whole,
        "rounding=nearest_even" => !to_whole,
        _ => false,
    };
    if !is_supported {
        return None;
    }
    Some(match case.target {
        "int8" => whole!(x, i8, u8),
        "int16" => whole!(x, i16, u16),
        "int32" => whole!(x, i32, u32),
        "int64" => whole!(x, i64, u64),
        "uint8" => whole!(x, u8, u8),
        "uint16" => whole!(x, u16, u16),
        "uint32" => whole!(x, u32, u32),
        "uint64" => whole!(x, u64, u64),
        "float32" => match x {
            Number::Integer(x) => (x as f32).to_bits().into(),
            Number::Single(x) => x.to_bits().into(),
            Number::Double(x) => (x as f32).to_bits().into(),
        },
        "float64" => match x {
            Number::Integer(x) => (x as f64).to_bits(),
            Number::Single(x) => f64::from(x).to_bits(),
            Number::Double(x) => x.to_bits(),
        },
        _ => return None,
    })
}

fn code(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

fn main() {
    let (mut passed, mut failed, mut absent) = (0, 0, 0);
    for path in env::args().skip(1) {
        let content = fs::read_to_string(&path).expect(&path);
        for line in content.lines().filter(|line| !line.starts_with('#')) {
            let fields: Vec<&str> = line.split('\t').collect();
            // Strings and elements that are errors have no codes.
            let (Some(given), Some(expected)) = (code(fields[1]), code(fields[4])) else {
                continue;
            };
            let case = Case {
                source: fields[0],
                code: given,
                target: fields[2],
                options: fields[3],
            };
            match convert(&case) {
                None => absent += 1,
                Some(result) if result == expected => passed += 1,
                Some(result) => {
                    failed += 1;
                    println!("{line}: {result:#x}");
                }
            }
        }
    }
    println!("{passed} passed, {failed} failed, {absent} without such a conversion");
    process::exit(i32::from(failed != 0 || passed == 0));
}
