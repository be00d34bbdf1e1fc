// SPDX-License-Identifier: GPL-2.0

//! What is written to the control files: one value, with or without a newline behind it, and
//! nothing else. All that is not exactly that is `EINVAL`.

use super::cycle::{
    Ratio,
    Roles, //
};
use core::ops::RangeInclusive;
use kernel::prelude::*;

/// The longest number: `u64::MAX` in decimal.
const MAX_DIGITS: usize = 20;
/// The most reads, and the most writes, in a cycle.
const MAX_SHARE: u64 = 1_000_000;

/// The text of the value in `input`.
///
/// # Errors
///
/// `EINVAL` unless it consists of visible ASCII characters.
pub(super) fn word(input: &[u8]) -> Result<&str> {
    let word = input.strip_suffix(b"\n").unwrap_or(input);
    if word.is_empty() || !word.iter().all(u8::is_ascii_graphic) {
        return Err(EINVAL);
    }
    core::str::from_utf8(word).map_err(|_| EINVAL)
}

/// The decimal number in `input`.
///
/// # Errors
///
/// `EINVAL` when it is not one, or not within `range`.
pub(super) fn number(input: &[u8], range: RangeInclusive<u64>) -> Result<u64> {
    digits(word(input)?, range)
}

/// As [`number`], for `u32`.
pub(super) fn small(input: &[u8], range: RangeInclusive<u32>) -> Result<u32> {
    let range = u64::from(*range.start())..=u64::from(*range.end());
    number(input, range)?.try_into().map_err(|_| EINVAL)
}

/// `0` or `1`.
pub(super) fn flag(input: &[u8]) -> Result<bool> {
    Ok(number(input, 0..=1)? == 1)
}

/// The only word that a trigger takes: `1`.
pub(super) fn trigger(input: &[u8]) -> Result {
    number(input, 1..=1).map(|_| ())
}

/// Reads to writes, as in `10:1`; not `0:0`.
pub(super) fn ratio(input: &[u8]) -> Result<Ratio> {
    let (reads, writes) = word(input)?.split_once(':').ok_or(EINVAL)?;
    let share =
        |text| -> Result<u32> { digits(text, 0..=MAX_SHARE)?.try_into().map_err(|_| EINVAL) };
    Ratio::new(share(reads)?, share(writes)?).ok_or(EINVAL)
}

/// The name of roles: `mixed` or `split`.
pub(super) fn roles(input: &[u8]) -> Result<Roles> {
    Roles::find(word(input)?).ok_or(EINVAL)
}

fn digits(text: &str, range: RangeInclusive<u64>) -> Result<u64> {
    // `parse` would take a sign.
    if text.len() > MAX_DIGITS || !text.bytes().all(|b| b.is_ascii_digit()) {
        return Err(EINVAL);
    }
    let value = text.parse().map_err(|_| EINVAL)?;
    if range.contains(&value) {
        Ok(value)
    } else {
        Err(EINVAL)
    }
}

#[kunit_tests(klocks_bench_parse)]
mod tests {
    use super::*;

    #[test]
    fn takes_plain_decimals() {
        assert!(matches!(number(b"0", 0..=9), Ok(0)));
        assert!(matches!(number(b"7\n", 0..=9), Ok(7)));
        assert!(matches!(number(b"007", 0..=9), Ok(7)));
        assert!(matches!(
            number(b"18446744073709551615\n", 0..=u64::MAX),
            Ok(u64::MAX)
        ));
    }

    #[test]
    fn refuses_all_else() {
        let long = [b'0'; 4096];
        let bad: [&[u8]; 18] = [
            b"",
            b"\n",
            b"\n\n",
            b"abc",
            b"-1",
            b"+1",
            b" 1",
            b"1 ",
            b"1\n\n",
            b"1\r\n",
            b"1x",
            b"0x1",
            b"1.0",
            b"1\0",
            b"1\0\n",
            b"\xff",
            b"18446744073709551616",
            &long,
        ];
        for input in bad {
            assert!(number(input, 0..=u64::MAX).is_err());
        }
    }

    #[test]
    fn keeps_to_the_range() {
        assert!(number(b"0", 1..=1024).is_err());
        assert!(matches!(small(b"1024", 1..=1024), Ok(1024)));
        assert!(small(b"1025", 1..=1024).is_err());
        assert!(small(b"4294967297", 1..=1024).is_err());
        assert!(matches!(flag(b"1\n"), Ok(true)));
        assert!(flag(b"2").is_err());
        assert!(trigger(b"0").is_err());
    }

    #[test]
    fn ratios() {
        assert!(matches!(ratio(b"10:1\n"), Ok(r) if (r.reads(), r.writes()) == (10, 1)));
        assert!(matches!(ratio(b"0:1"), Ok(r) if (r.reads(), r.writes()) == (0, 1)));
        let bad: [&[u8]; 8] = [
            b"0:0",
            b"1",
            b":",
            b"1:",
            b":1",
            b"1:1:1",
            b"1000001:1",
            b"-1:1",
        ];
        for input in bad {
            assert!(ratio(input).is_err());
        }
    }
}
