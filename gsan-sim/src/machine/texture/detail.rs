//! Levels of detail: which of a mipmap's images a read takes, or which two and how much of each.

use super::mix::WHOLE;

/// What a texture says about levels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Detail {
    /// Two neighbouring levels are mixed.
    pub mixed: bool,
    /// Added to each level.
    pub bias: f32,
    /// The ends of what is taken.
    pub ends: [f32; 2],
}

impl Detail {
    /// Where there is but one level.
    pub const NONE: Detail = Detail {
        mixed: false,
        bias: 0.0,
        ends: [0.0; 2],
    };

    /// Levels and their shares of [`WHOLE`], of `count`. The bias counts where a level is said or computed.
    pub fn levels(&self, level: Option<f64>, count: usize) -> [(usize, u32); 2] {
        let last = count.saturating_sub(1) as f64;
        let [least, most] = self.ends.map(f64::from);
        let level = level.map_or(0.0, |level| level + f64::from(self.bias));
        let level = if level.is_nan() { 0.0 } else { level };
        let level = level.max(least).min(most).clamp(0.0, last);
        if !self.mixed {
            return [((level + 0.5).floor().min(last) as usize, WHOLE), (0, 0)];
        }
        // Fixed point, with eight bits behind the point.
        let (low, share) = (
            level.floor() as usize,
            (level.fract() * f64::from(WHOLE)) as u32,
        );
        [(low, WHOLE - share), ((low + 1).min(count - 1), share)]
    }
}

/// A length, as the hardware takes it: an octagon is near enough to a circle.
fn length(step: [f64; 3]) -> f64 {
    let step = step.map(f64::abs);
    let longest = step.into_iter().fold(0.0, f64::max);
    longest + (step.into_iter().sum::<f64>() - longest) * 11.0 / 32.0
}

/// The level at which the longer of two steps is a texel long; where they run side by side, both of them together.
pub fn of_steps([a, b]: [[f64; 3]; 2]) -> f64 {
    let sum = [0, 1, 2].map(|i| a[i] + b[i]);
    let difference = [0, 1, 2].map(|i| a[i] - b[i]);
    let diagonal = length(sum).max(length(difference)) * 11.0 / 16.0;
    length(a).max(length(b)).max(diagonal).log2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_mixed_or_the_next_one() {
        let mut detail = Detail {
            mixed: true,
            bias: 0.0,
            ends: [0.0, 100.0],
        };
        assert_eq!(detail.levels(Some(1.25), 4), [(1, 192), (2, 64)]);
        assert_eq!(detail.levels(Some(1.2539), 4), [(1, 192), (2, 64)]);
        assert_eq!(detail.levels(Some(-3.0), 4)[0], (0, 256));
        assert_eq!(detail.levels(Some(9.0), 4)[0], (3, 256));
        assert_eq!(detail.levels(Some(f64::NAN), 4)[0], (0, 256));
        detail.ends = [0.5, 2.0];
        assert_eq!(detail.levels(Some(0.0), 4), [(0, 128), (1, 128)]);
        assert_eq!(detail.levels(Some(3.0), 4)[0], (2, 256));
        (detail.mixed, detail.bias, detail.ends[0]) = (false, 0.75, 0.0);
        assert_eq!(detail.levels(Some(1.0), 4)[0], (2, 256));
        assert_eq!(detail.levels(Some(0.5), 4)[0], (1, 256));
        assert_eq!(detail.levels(None, 4)[0], (0, 256));
        // Across each other, and side by side.
        assert_eq!(of_steps([[4.0, 0.0, 0.0], [0.0, 3.0, 0.0]]), 2.0);
        assert_eq!(of_steps([[8.0, 0.0, 0.0], [8.0, 0.0, 0.0]]), 11f64.log2());
    }
}
