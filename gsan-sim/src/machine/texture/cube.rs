//! Cube maps: six square faces, and a direction from the middle of the cube in place of coordinates.

/// Where a direction leads: a face, and a place on it from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spot {
    /// +x, −x, +y, −y, +z, −z.
    pub face: usize,
    pub place: [f64; 2],
}

/// A face's axes, as the direction's components: across, down, and outwards.
fn axes([x, y, z]: [f64; 3], face: usize) -> [f64; 3] {
    match face {
        0 => [-z, -y, x],
        1 => [z, -y, -x],
        2 => [x, z, y],
        3 => [x, -z, -y],
        4 => [x, -y, z],
        _ => [-x, -y, -z],
    }
}

/// The direction that a face's axes stand for.
fn direction([s, t, m]: [f64; 3], face: usize) -> [f64; 3] {
    match face {
        0 => [m, -t, -s],
        1 => [-m, -t, s],
        2 => [s, m, t],
        3 => [s, -m, -t],
        4 => [s, -t, m],
        _ => [-s, -t, -m],
    }
}

/// The face whose axis is the longest; of equal ones z comes before y, and y before x.
pub fn face_of([x, y, z]: [f64; 3]) -> usize {
    let (ax, ay, az) = (x.abs(), y.abs(), z.abs());
    if az >= ax && az >= ay {
        4 + usize::from(z.is_sign_negative())
    } else if ay >= ax {
        2 + usize::from(y.is_sign_negative())
    } else {
        usize::from(x.is_sign_negative())
    }
}

/// Where a direction leads.
pub fn spot(at: [f64; 3]) -> Spot {
    let face = face_of(at);
    let [s, t, m] = axes(at, face);
    let place = [s, t].map(|x| (x / m + 1.0) / 2.0);
    Spot { face, place }
}

/// A texel that may lie beyond one edge of its face of `n` × `n`: the neighbouring face's. Beyond two edges there is none.
pub fn neighbour(face: usize, [x, y]: [i64; 2], n: i64) -> Option<(usize, [i64; 2])> {
    let outside = |i: i64| !(0..n).contains(&i);
    match (outside(x), outside(y)) {
        (false, false) => return Some((face, [x, y])),
        (true, true) => return None,
        _ => {}
    }
    let centre = |i: i64| (2.0 * i as f64 + 1.0) / n as f64 - 1.0;
    let there = spot(direction([centre(x), centre(y), 1.0], face));
    let texel = there
        .place
        .map(|p| ((p * n as f64).floor() as i64).clamp(0, n - 1));
    Some((there.face, texel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_and_directions_are_inverse() {
        for face in 0..6 {
            let at = direction([0.25, -0.5, 1.0], face);
            assert_eq!(face_of(at), face);
            assert_eq!(axes(at, face), [0.25, -0.5, 1.0]);
            let found = spot(at.map(|x| 3.0 * x));
            assert_eq!((found.face, found.place), (face, [0.625, 0.25]));
        }
    }

    /// Whoever steps over an edge and turns round comes back.
    #[test]
    fn neighbours_are_mutual() {
        for face in 0..6 {
            for i in 0..4 {
                for at in [[-1, i], [4, i], [i, -1], [i, 4]] {
                    let (other, [x, y]) = neighbour(face, at, 4).expect("one edge only");
                    assert_ne!(other, face);
                    let steps = [[x - 1, y], [x + 1, y], [x, y - 1], [x, y + 1]];
                    let back = steps.into_iter().filter_map(|at| neighbour(other, at, 4));
                    let home = [at[0].clamp(0, 3), at[1].clamp(0, 3)];
                    assert!(back.into_iter().any(|found| found == (face, home)));
                }
            }
            assert_eq!(neighbour(face, [-1, 4], 4), None);
        }
    }
}
