//! cuRAND's generators, all by Philox-4x32-10: a counter and a key make four numbers, so any place of a sequence can be
//! computed alone (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). A generator's sequence is
//! its own: it repeats for a seed, but is not the sequence of NVIDIA's generator of that name.

use crate::arguments::Call;
use crate::memory::{collected, store};
use crate::objects::{Job, job};
use crate::{Problem, invalid, unsupported};

/// `CURAND_STATUS_LENGTH_NOT_MULTIPLE`.
const LENGTH_NOT_MULTIPLE: u32 = 105;

/// A generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Generator {
    seed: u64,
    /// Place of the next number.
    next: u64,
}

fn philox(seed: u64, place: u64, draw: u32) -> [u32; 4] {
    let (mut key, mut state) = ([seed as u32, (seed >> 32) as u32], [place as u32, (place >> 32) as u32, draw, 0]);
    for _ in 0..10 {
        let (first, second) = (u64::from(state[0]) * 0xD251_1F53, u64::from(state[2]) * 0xCD9E_8D57);
        state = [
            (second >> 32) as u32 ^ state[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ state[3] ^ key[1],
            first as u32,
        ];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    state
}

/// In (0, 1].
fn uniform32(bits: u32) -> f32 {
    bits as f32 * 2f32.powi(-32) + 2f32.powi(-33)
}

/// In (0, 1], with 53 bits.
fn uniform64(high: u32, low: u32) -> f64 {
    let bits = u64::from(high) << 21 ^ u64::from(low) >> 11;
    (bits + 1) as f64 * 2f64.powi(-53)
}

/// Two independent normal numbers (Box and Muller).
fn normals([a, b, c, d]: [u32; 4]) -> [f64; 2] {
    let radius = (-2.0 * uniform64(a, b).ln()).sqrt();
    let angle = std::f64::consts::TAU * uniform64(c, d);
    [radius * angle.cos(), radius * angle.sin()]
}

impl Generator {
    /// A generator of this type.
    pub fn of(kind: i64) -> Result<Generator, Problem> {
        match kind {
            100 | 101 | 121 | 141 | 142 | 161 => Ok(Generator::default()),
            200 => Err(unsupported("CURAND_RNG_QUASI_DEFAULT")),
            201 => Err(unsupported("CURAND_RNG_QUASI_SOBOL32")),
            202 => Err(unsupported("CURAND_RNG_QUASI_SCRAMBLED_SOBOL32")),
            203 => Err(unsupported("CURAND_RNG_QUASI_SOBOL64")),
            204 => Err(unsupported("CURAND_RNG_QUASI_SCRAMBLED_SOBOL64")),
            other => Err(unsupported(format!("random number generator {other}"))),
        }
    }

    /// `curandSet…`
    pub fn set(&mut self, call: &Call) -> Result<(), Problem> {
        match call.function.symbol.as_str() {
            "curandSetPseudoRandomGeneratorSeed" => *self = Generator { seed: call.int("seed")? as u64, next: 0 },
            "curandSetGeneratorOffset" => self.next = call.int("offset")? as u64,
            "curandSetStream" | "curandSetGeneratorOrdering" => {}
            _ => return Err(unsupported("a generator's dimensions")),
        }
        Ok(())
    }

    /// The values of so many places, of which each group of four gives `N`; an offset may begin inside a group.  A call
    /// begins at a group of its own: which numbers it gives depends on the calls before, not on their kinds.
    fn values<T, const N: usize>(self, count: usize, of: impl Fn([u32; 4]) -> [T; N]) -> Vec<T> {
        let skipped = (self.next % 4) as usize * N / 4;
        let groups = (0..(skipped + count).div_ceil(N) as u64).map(|group| philox(self.seed, self.next / 4 + group, 0));
        collected(count, groups.flat_map(of).skip(skipped).take(count))
    }

    fn words(self, count: usize) -> Vec<u32> {
        self.values(count, |group| group)
    }

    fn normals(self, count: usize, mean: f64, deviation: f64) -> Vec<f64> {
        self.values(count, |group| normals(group).map(|x| mean + deviation * x))
    }

    fn doubles(self, count: usize) -> Vec<f64> {
        self.values(count, |[a, b, c, d]| [uniform64(a, b), uniform64(c, d)])
    }

    /// Knuth's method; a large mean is the sum of smaller ones.
    fn poisson(self, place: u64, lambda: f64) -> u32 {
        let (mut left, mut total, mut draw) = (lambda, 0, 0);
        while left > 0.0 {
            let part = left.min(500.0);
            left -= part;
            let limit = (-part).exp();
            let mut product = 1.0;
            loop {
                draw += 1;
                let [a, b, ..] = philox(self.seed, place, draw);
                product *= uniform64(a, b);
                if product <= limit {
                    break;
                }
                total += 1;
            }
        }
        total
    }

    /// `curandGenerate…`: takes its part of the sequence now, computes it later.
    pub fn generate(&mut self, call: &Call) -> Result<Job, Problem> {
        let generator = *self;
        if call.function.symbol == "curandGenerateSeeds" {
            return job(|_, _| Ok(()));
        }
        let (target, count) = (call.device("target")?, call.size("count")?);
        if count > 1 << 36 {
            return Err(invalid("count"));
        }
        let symbol = call.function.symbol.as_str();
        if symbol == "curandGenerateLongLong" {
            return Err(unsupported("a number of 64 bits from a generator of 32"));
        }
        if symbol.contains("Normal") && !count.is_multiple_of(2) {
            let text = format!("normal numbers are made in pairs, and {count} is odd");
            return Err(Problem::Own(LENGTH_NOT_MULTIPLE, text));
        }
        let single = matches!(symbol, "curandGenerate" | "curandGenerateUniform");
        self.next += (count as u64 * if single { 1 } else { 2 }).next_multiple_of(4);
        let float = |name: &str| if call.has(name) { call.float(name) } else { Ok(0.0) };
        let (mean, deviation, lambda) = (float("mean")?, float("deviation")?, float("lambda")?);
        match symbol {
            "curandGenerate" => job(move |memory, _| store(memory, target, &generator.words(count))),
            "curandGenerateUniform" => job(move |memory, _| {
                store(memory, target, &collected(count, generator.words(count).into_iter().map(uniform32)))
            }),
            "curandGenerateUniformDouble" => job(move |memory, _| store(memory, target, &generator.doubles(count))),
            "curandGenerateNormal" | "curandGenerateLogNormal" => {
                let logarithmic = symbol == "curandGenerateLogNormal";
                job(move |memory, _| {
                    let values = generator.normals(count, mean, deviation).into_iter();
                    let values = values.map(|x| if logarithmic { x.exp() } else { x } as f32);
                    store(memory, target, &collected(count, values))
                })
            }
            "curandGenerateNormalDouble" => {
                job(move |memory, _| store(memory, target, &generator.normals(count, mean, deviation)))
            }
            "curandGenerateLogNormalDouble" => job(move |memory, _| {
                let values: Vec<f64> = generator.normals(count, mean, deviation).into_iter().map(f64::exp).collect();
                store(memory, target, &values)
            }),
            "curandGeneratePoisson" if lambda > 0.0 && lambda < 1e6 => job(move |memory, _| {
                let place = |at: usize| generator.next + at as u64;
                store(memory, target, &collected(count, (0..count).map(|at| generator.poisson(place(at), lambda))))
            }),
            _ => Err(invalid("lambda")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers of Random123's Philox-4x32-10.
    #[test]
    fn philox_gives_its_known_answers() {
        assert_eq!(philox(0, 0, 0), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
    }

    #[test]
    fn an_offset_leaves_out_as_many_numbers() {
        let at = |next| Generator { seed: 7, next };
        let (words, doubles, normals) = (at(0).words(20), at(0).doubles(20), at(0).normals(20, 0.0, 1.0));
        for offset in [1, 2, 3, 4, 7] {
            assert_eq!(at(offset).words(9), words[offset as usize..][..9]);
        }
        // Two of the generator's numbers make one of these.
        for offset in [2, 4, 6] {
            assert_eq!(at(offset).doubles(9), doubles[offset as usize / 2..][..9]);
            assert_eq!(at(offset).normals(9, 0.0, 1.0), normals[offset as usize / 2..][..9]);
        }
    }

    #[test]
    fn numbers_are_made_in_memory_that_the_lease_has() {
        let mib = crate::meter::tests::needed(|| drop(Generator::default().doubles(4 << 20)));
        assert_eq!(mib, 20, "32 MiB, of which 16 are free");
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let generator = Generator { seed: 42, next: 0 };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let normal = generator.normals(100_000, 3.0, 2.0);
        assert!((mean(&normal) - 3.0).abs() < 0.05);
        let squares: Vec<f64> = normal.iter().map(|x| (x - 3.0).powi(2)).collect();
        assert!((mean(&squares) - 4.0).abs() < 0.1);
        assert!((mean(&generator.doubles(100_000)) - 0.5).abs() < 0.01);
        let poisson: Vec<f64> = (0..2000).map(|at| f64::from(generator.poisson(at, 700.0))).collect();
        assert!((mean(&poisson) - 700.0).abs() < 3.0);
    }
}
