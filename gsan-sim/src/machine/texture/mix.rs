//! Filters: weights of eight bits that sum up to one whole, and mixes of texels by them, as an H200 has them.

use super::Channel;
use crate::machine::alu::round::F16;

/// The weights' sum.
pub const WHOLE: u32 = 256;

/// A coordinate in texels as the first of two neighbours, and the second one's weight.
pub fn neighbours(x: f64) -> (i64, u32) {
    let x = if x.is_nan() { 0.0 } else { x };
    let fixed = ((x - 0.5) * f64::from(WHOLE) + 0.5)
        .floor()
        .clamp(-1e11, 1e11) as i64;
    (
        fixed.div_euclid(WHOLE.into()),
        fixed.rem_euclid(WHOLE.into()) as u32,
    )
}

/// Splits a weight between two neighbours; halves go up, or down.
fn split(weight: u32, share: u32, up: bool) -> [u32; 2] {
    let second = (weight * share + if up { 128 } else { 127 }) / WHOLE;
    [weight - second, second]
}

/// The weights of two, four or eight texels (x runs fastest) whose sum is `whole`.
pub fn weights(whole: u32, shares: &[u32]) -> Vec<u32> {
    match *shares {
        [] => vec![whole],
        [x] => split(whole, x, true).to_vec(),
        [x, y] => {
            let [left, right] = split(whole, x, true);
            let ([a, c], [b, d]) = (split(left, y, false), split(right, y, true));
            vec![a, b, c, d]
        }
        [x, y, z, ..] => {
            let [near, far] = split(whole, z, true);
            [near, far]
                .iter()
                .flat_map(|&w| weights(w, &[x, y]))
                .collect()
        }
    }
}

/// What a register has of a mix of integers.
pub fn integer(channel: Channel, mix: impl Iterator<Item = (i64, u32)>) -> u32 {
    let sum: i64 = mix.map(|(x, weight)| x * i64::from(weight)).sum();
    let half = if channel.bytes() < 4 { 128 } else { 0 };
    ((sum + half) >> 8) as u32
}

/// What it has of a mix of fractions (from 0 or −1 to 1) or floats.
pub fn float(channel: Channel, srgb: bool, mix: impl Iterator<Item = (f32, u32)>) -> f32 {
    // Narrow integers are fractions of 16 bits by then.
    let most = match channel {
        Channel::U8 | Channel::U16 => 65535.0,
        Channel::S8 | Channel::S16 => 32767.0,
        _ => 0.0,
    };
    if most > 0.0 && !srgb {
        let sum: f64 = mix
            .map(|(x, weight)| (f64::from(x) * most).round() * f64::from(weight))
            .sum();
        return ((sum / f64::from(WHOLE) + 0.5).floor() / most) as f32;
    }
    let sum: f64 = mix
        .map(|(x, weight)| f64::from(x) * f64::from(weight))
        .sum();
    let sum = sum / f64::from(WHOLE);
    match srgb || channel == Channel::F16 {
        true => F16.decode(F16.encode(sum, 0)) as f32,
        false => sum as f32,
    }
}

/// The light that an sRGB byte stands for: eight bits of it, or multiples of 2^-14.
pub fn light(x: f32) -> f32 {
    let byte = (x * 255.0).round() as u8;
    let x = f64::from(x);
    let exact = match x <= 0.04045 {
        true => x / 12.92,
        false => ((x + 0.055) / 1.055).powf(2.4),
    };
    let step = 2f64.powi((exact.log2().floor().max(-7.0) as i32 - 7).min(0));
    // Where the hardware's table is not what is nearest.
    let off = match byte {
        33 | 66 | 184 | 186 | 252 | 253 => 1.0,
        32 | 65 | 68 | 70 | 97 | 249..=251 => -1.0,
        _ => 0.0,
    };
    (((exact / step).round() + off) * step) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_sum_up() {
        assert_eq!(weights(256, &[20, 225]), [29, 2, 207, 18]);
        for i in 0..256 {
            let shares = [i, i * 7 % 256, i * 31 % 256];
            for n in 0..=3 {
                for whole in [256, i, 256 - i] {
                    let all = weights(whole, &shares[..n]);
                    assert_eq!((all.len(), all.iter().sum()), (1 << n, whole));
                }
            }
        }
    }

    #[test]
    fn coordinates_have_eight_bits_behind_the_point() {
        assert_eq!(neighbours(1.75), (1, 64));
        assert_eq!(neighbours(0.0), (-1, 128));
        assert_eq!(neighbours(2.5 - 1.0 / 1024.0), (2, 0));
        assert_eq!(neighbours(f64::NAN), (-1, 128));
        assert_eq!(neighbours(f64::INFINITY).1, 0);
    }

    /// Words that an H200 found.
    #[test]
    fn mixes_are_those_of_the_hardware() {
        let weights = [5, 9, 94, 148];
        let bytes = [210, 138, 210, 138];
        let mix = |x: [i64; 4]| x.into_iter().zip(weights);
        assert_eq!(integer(Channel::U8, mix(bytes)), 166);
        assert_eq!(integer(Channel::U32, mix(bytes)), 165);
        let parts = bytes.map(|x| x as f32 / 255.0).into_iter().zip(weights);
        assert_eq!(float(Channel::U8, false, parts).to_bits(), 0x3f26_7ea6);
        for (byte, expected) in [
            (107, 0.147_460_94),
            (11, 0.003_356_933_6),
            (0, 0.0),
            (255, 1.0),
        ] {
            assert_eq!(light(byte as f32 / 255.0), expected);
        }
    }
}
