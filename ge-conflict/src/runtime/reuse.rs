//! Outputs that the user lets share memory with inputs: `in,out|in,out`.
//!
//! A part is skipped if it is empty, has no comma, contains a minus, or one of its halves is not a number that fits. Unlike
//! the observed implementation, which takes `1abc` for 1, a half must be nothing but digits, blanks around it aside.

use crate::ctx::PassError;

/// The pairs of a text.
pub fn parse(text: &str) -> Vec<(u32, u32)> {
    let number = |s: &str| {
        let s = s.trim();
        if s.is_empty() || !s.bytes().all(|b| b.is_ascii_digit()) {
            None
        } else {
            s.parse().ok()
        }
    };
    let pair = |part: &str| {
        let (input, output) = part.split_once(',')?;
        Some((number(input)?, number(output)?))
    };
    text.split('|').filter_map(pair).collect()
}

/// When the model is built: every index names an input or output.
pub fn check_counts(pairs: &[(u32, u32)], inputs: usize, outputs: usize) -> Result<(), PassError> {
    for (i, o) in pairs {
        if *i as usize >= inputs || *o as usize >= outputs {
            return Err(PassError::ParamInvalid(format!(
                "the pair {i},{o} names an input or output that the model lacks (it has {inputs} and {outputs})"
            )));
        }
    }
    Ok(())
}

/// Before a run: the addresses of each pair are equal. Without inputs or pairs there is nothing to check.
pub fn check_addresses(
    pairs: &[(u32, u32)],
    inputs: &[u64],
    outputs: &[u64],
) -> Result<(), PassError> {
    if inputs.is_empty() {
        return Ok(());
    }
    for (i, o) in pairs {
        let (Some(a), Some(b)) = (inputs.get(*i as usize), outputs.get(*o as usize)) else {
            return Err(PassError::ParamInvalid(format!(
                "the pair {i},{o} names an input or output that was not bound"
            )));
        };
        if a != b {
            return Err(PassError::ParamInvalid(format!(
                "input {i} lies at {a:#x}, output {o} at {b:#x}: the model was built for one address for both"
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_texts() {
        for (text, count) in [
            ("0,0", 1),
            ("0,1|2,3|10,20", 3),
            ("", 0),
            ("1,1||2,2|", 2),
            ("1,1|-1,0|2,2|0,-5", 2),
            ("1,1|invalid|3,3", 2),
            ("a,b|1,1", 1),
            ("12345678901234567890123456,0", 0),
            ("1abc,1", 0),
            (" 1 , 2 ", 1),
        ] {
            assert_eq!(parse(text).len(), count, "{text:?}");
        }
    }

    #[test]
    fn addresses_must_agree() {
        assert!(check_addresses(&[], &[1], &[2]).is_ok());
        assert!(check_addresses(&[(0, 0)], &[7], &[7]).is_ok());
        assert!(check_addresses(&[(0, 0), (1, 1)], &[7, 8], &[7, 8]).is_ok());
        assert!(check_addresses(&[(0, 0)], &[], &[]).is_ok());
        assert!(matches!(
            check_addresses(&[(0, 0)], &[7], &[8]),
            Err(PassError::ParamInvalid(_))
        ));
        assert!(matches!(
            check_addresses(&[(0, 5)], &[7], &[7]),
            Err(PassError::ParamInvalid(_))
        ));
        assert!(check_counts(&[(0, 1)], 1, 2).is_ok() && check_counts(&[(1, 1)], 1, 2).is_err());
    }
}
