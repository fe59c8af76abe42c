// SPDX-License-Identifier: Apache-2.0
//! The crate as its users see it.

use tensorcast::{
    DType, Inexact, Options, OutOfRange, Rounding, Status, cast, cast_bytes, cast_into, cast_to, dtypes, explain,
    promote, quantize,
};

fn of(name: &str) -> DType {
    DType::parse(name).unwrap()
}

#[test]
fn every_type_has_a_name_that_is_found_again() {
    assert!(dtypes().len() >= 32);
    for dtype in dtypes() {
        assert_eq!(of(dtype.name()), dtype);
    }
    assert_eq!(DType::parse("float9").unwrap_err().status, Status::InvalidArgument);
    assert!(DType::parse("a\0b").is_err());
}

#[test]
fn numbers_are_rounded_once() {
    let options = Options::default();
    assert_eq!(
        cast(&[1.0f32, 0.1, f32::NAN, -0.0], of("float16"), &options).unwrap(),
        [0, 0x3c, 0x66, 0x2e, 0, 0x7e, 0, 0x80]
    );
    assert_eq!(cast_to::<f64, f32>(&[0.1, 1e39], &options).unwrap(), [0.1, f32::INFINITY]);
    let up = Options { rounding: Rounding::TowardPositive, ..options };
    assert_eq!(cast_to::<f32, i32>(&[0.25, -0.75], &up).unwrap(), [1, 0]);
    let doubled = Options { scale: 2.0, ..options };
    assert_eq!(cast_to::<i16, f32>(&[3], &doubled).unwrap(), [6.0]);
    assert!(cast_to::<f32, u8>(&[], &options).unwrap().is_empty());
}

#[test]
fn packed_types_have_their_low_bits_first() {
    let options = Options::default();
    let packed = cast(&[1.0f32, -2.0, 6.0], of("float4_e2m1fn"), &options).unwrap();
    assert_eq!(packed, [0xc2, 0x07]);
    let numbers = cast_bytes(&packed, of("float4_e2m1fn"), DType::FLOAT32, 3, &options).unwrap();
    assert_eq!(numbers, [1.0f32, -2.0, 6.0].iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());
}

#[test]
fn errors_name_the_element_and_wrong_sizes_are_errors() {
    let strict = Options { out_of_range: OutOfRange::Error, ..Options::default() };
    let error = cast_to::<f32, i8>(&[1.0, 300.0], &strict).unwrap_err();
    assert_eq!((error.status, error.element), (Status::OutOfRange, Some(1)));
    let exact = Options { inexact: Inexact::Error, ..Options::default() };
    assert_eq!(cast_to::<f32, i8>(&[1.5], &exact).unwrap_err().element, Some(0));
    let error = cast_into(&[0; 7], DType::FLOAT32, &mut [0; 4], DType::FLOAT16, 2, &Options::default()).unwrap_err();
    assert_eq!(error.to_string(), "2 elements of float32 take 8 bytes, but the source has 7");
    assert!(cast_bytes(&[], DType::FLOAT64, DType::FLOAT32, usize::MAX, &Options::default()).is_err());
    assert!(cast_to::<f32, f32>(&[1.0], &Options { scale: f64::NAN, ..Options::default() }).is_err());
}

#[test]
fn pieces_have_the_random_bits_of_the_whole() {
    let numbers = [0.3f32; 96];
    let options = Options { rounding: Rounding::Stochastic, seed: 5, ..Options::default() };
    let whole = cast(&numbers, of("float8_e4m3fn"), &options).unwrap();
    let mut pieces = cast(&numbers[..40], of("float8_e4m3fn"), &options).unwrap();
    let behind = Options { first_element: 40, ..options };
    pieces.extend(cast(&numbers[40..], of("float8_e4m3fn"), &behind).unwrap());
    assert_eq!(pieces, whole);
    assert!(explain("0.1", None, &behind).is_err(), "one number has no place");
}

#[test]
fn types_are_promoted_and_numbers_explained() {
    assert_eq!(promote(DType::FLOAT16, of("int8")).unwrap(), DType::FLOAT16);
    assert_eq!(promote(of("int64"), of("uint64")).unwrap_err().status, Status::Unsupported);
    assert!(explain("0.1", Some(of("float8_e4m3fn")), &Options::default()).unwrap().contains("0x1D"));
    assert_eq!(explain("x", None, &Options::default()).unwrap_err().status, Status::Parse);
}

#[test]
fn weights_become_blocks_and_numbers_again() {
    let weight: Vec<f32> = (0..256).map(|i| (i as f32 * 0.37).sin()).collect();
    let made = quantize(&weight, 64, "nvfp4", None).unwrap();
    assert_eq!((made.codes().len(), made.scales().len(), made.global_scale().is_some()), (128, 16, true));
    for (number, stored) in weight.iter().zip(made.dequantize().unwrap()) {
        assert!((number - stored).abs() < 0.2, "{number} {stored}");
    }
    assert_eq!(quantize(&weight, 64, "mxfp4", Some("floor")).unwrap().recipe(), "floor");
    assert!(quantize(&weight, 63, "mxfp4", None).is_err());
    assert!(quantize(&weight, 64, "mxfp5", None).is_err());
}
