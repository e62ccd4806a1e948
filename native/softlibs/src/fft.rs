//! cuFFT: transforms of one to three dimensions, of any size and layout, not scaled.

use crate::arguments::Call;
use crate::memory::{Fault, Memory, collected, load_numbers, store_numbers, zeros};
use crate::meter;
use crate::number::Field;
use crate::objects::{Job, job};
use crate::{Problem, invalid, unsupported};
use num_complex::{Complex, Complex64};
use rustfft::{FftDirection, FftPlanner};
use sluice_protocol::library::Argument;

/// What a transform reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Complex,
    FromReal,
    ToReal,
}

/// How elements lie in memory.
#[derive(Clone, Debug)]
struct Layout {
    embed: Vec<usize>,
    step: usize,
    distance: usize,
    /// Nobody gave a layout: in place, rows of real numbers are padded.
    standard: bool,
}

/// A plan.
#[derive(Clone, Debug)]
pub struct Plan {
    sizes: Vec<usize>,
    form: Form,
    double: bool,
    batch: usize,
    input: Layout,
    output: Layout,
}

/// `CUFFT_INVALID_SIZE`.
const INVALID_SIZE: u32 = 8;

/// What a plan may be at most, so that a mistake asks for no endless work.
const MOST_ELEMENTS: usize = 1 << 34;

impl Plan {
    /// The plan that a call describes: `cufftPlan…` or `cufft…MakePlan…`.
    pub fn of(call: &Call) -> Result<Plan, Problem> {
        let size = |name: &str| {
            let value = call.int(name)?;
            let size = usize::try_from(value).ok().filter(|value| *value > 0);
            size.ok_or_else(|| Problem::Own(INVALID_SIZE, format!("{name} is {value}")))
        };
        let sizes: Vec<usize> = if call.has("rank") {
            let rank = size("rank")?;
            if rank > 3 {
                return Err(unsupported("a transform of more than three dimensions"));
            }
            list(call, "n", rank)?.ok_or_else(|| invalid("n"))?
        } else {
            let names = ["nx", "ny", "nz"].into_iter().filter(|name| call.has(name));
            names.map(size).collect::<Result<_, _>>()?
        };
        let (form, double) = if call.has("itype") {
            match (call.int("itype")?, call.int("otype")?) {
                (4, 4) => (Form::Complex, false),
                (5, 5) => (Form::Complex, true),
                (0, 4) => (Form::FromReal, false),
                (1, 5) => (Form::FromReal, true),
                (4, 0) => (Form::ToReal, false),
                (5, 1) => (Form::ToReal, true),
                (a, b) => return Err(unsupported(format!("a transform of type {a} to {b}"))),
            }
        } else {
            match call.int("type")? {
                0x29 => (Form::Complex, false),
                0x2a => (Form::FromReal, false),
                0x2c => (Form::ToReal, false),
                0x69 => (Form::Complex, true),
                0x6a => (Form::FromReal, true),
                0x6c => (Form::ToReal, true),
                other => return Err(invalid(format!("transform type {other}"))),
            }
        };
        let batch = if call.has("batch") { size("batch")? } else { 1 };
        let layout = |real: bool, embed: &str, step: &str, distance: &str| -> Result<Layout, Problem> {
            let given = if call.has(embed) { list(call, embed, sizes.len())? } else { None };
            let own = if real { sizes.clone() } else { halved(&sizes, form) };
            match given {
                None => {
                    let distance = own.iter().product();
                    Ok(Layout { embed: own, step: 1, distance, standard: true })
                }
                Some(embed) => Ok(Layout { embed, step: size(step)?, distance: call.size(distance)?, standard: false }),
            }
        };
        let input = layout(form == Form::FromReal, "inembed", "istride", "idist")?;
        let output = layout(form == Form::ToReal, "onembed", "ostride", "odist")?;
        let plan = Plan { sizes, form, double, batch, input, output };
        let elements = plan.sizes.iter().try_fold(batch, |all, size| all.checked_mul(*size));
        let spans = [&plan.input, &plan.output].map(|layout| plan.span(layout, &layout.embed).unwrap_or(usize::MAX));
        if elements.is_none_or(|all| all > MOST_ELEMENTS) || spans.iter().any(|span| *span > MOST_ELEMENTS) {
            return Err(Problem::Own(INVALID_SIZE, "the transform is too large".to_owned()));
        }
        Ok(plan)
    }

    /// Elements from the first to the last of all batches.
    fn span(&self, layout: &Layout, extent: &[usize]) -> Option<usize> {
        let one = extent.iter().try_fold(1usize, |all, size| all.checked_mul(*size))?.checked_mul(layout.step)?;
        self.batch.checked_sub(1)?.checked_mul(layout.distance)?.checked_add(one)
    }

    /// Runs the plan on these addresses; the direction is 1 for an inverse.
    pub fn run(&self, call: &Call) -> Result<Job, Problem> {
        let (source, target) = (call.device("source")?, call.device("target")?);
        if source == 0 || target == 0 {
            return Err(invalid("an address that is null"));
        }
        let symbol = call.function.symbol.as_str();
        let wanted = match symbol {
            "cufftXtExec" => (self.form, self.double),
            "cufftExecC2C" => (Form::Complex, false),
            "cufftExecZ2Z" => (Form::Complex, true),
            "cufftExecR2C" => (Form::FromReal, false),
            "cufftExecD2Z" => (Form::FromReal, true),
            "cufftExecC2R" => (Form::ToReal, false),
            _ => (Form::ToReal, true),
        };
        if wanted != (self.form, self.double) {
            return Err(invalid("the plan is of another type"));
        }
        let inverse = match self.form {
            Form::FromReal => false,
            Form::ToReal => true,
            Form::Complex => match call.int("direction")? as i32 {
                1 => true,
                -1 => false,
                other => return Err(invalid(format!("direction {other}, which is neither -1 nor 1"))),
            },
        };
        let mut plan = self.clone();
        if source == target {
            plan.pad_in_place();
        }
        job(move |memory, _| plan.transform(memory, source, target, inverse))
    }

    /// In place, rows of real numbers have room for the complex ones.
    fn pad_in_place(&mut self) {
        let real = match self.form {
            Form::Complex => return,
            Form::FromReal => &mut self.input,
            Form::ToReal => &mut self.output,
        };
        if real.standard
            && let Some(last) = real.embed.last_mut()
        {
            *last = 2 * (*last / 2 + 1);
            real.distance = real.embed.iter().product();
        }
    }

    /// In double precision: what lies in memory in single precision is widened and rounded.
    fn transform(&self, memory: &dyn Memory, source: u64, target: u64, inverse: bool) -> Result<(), Fault> {
        let half = halved(&self.sizes, self.form);
        let count: usize = self.sizes.iter().product();
        let mut planner = FftPlanner::new();
        let direction = if inverse { FftDirection::Inverse } else { FftDirection::Forward };
        let plan = |size: &usize| {
            meter::expect(most_of_plan(*size));
            planner.plan_fft(*size, direction)
        };
        let lines: Vec<_> = self.sizes.iter().map(plan).collect();
        let mut scratch = zeros(lines.iter().map(|fft| fft.get_inplace_scratch_len()).max().unwrap_or(0));
        let mut result = Vec::with_capacity(self.batch);
        let real_input: Vec<f64>;
        let complex_input: Vec<Complex64>;
        if self.form == Form::FromReal {
            real_input = load_numbers(memory, source, self.reach(&self.input, &self.sizes), !self.double)?;
            complex_input = Vec::new();
        } else {
            real_input = Vec::new();
            complex_input = load_numbers(memory, source, self.reach(&self.input, &half), !self.double)?;
        }
        for batch in 0..self.batch {
            let first = batch * self.input.distance;
            let mut data: Vec<Complex64> = match self.form {
                Form::FromReal => {
                    let real = |at| Complex::new(real_input[first + at], 0.0);
                    collected(count, places(&self.input, &self.sizes).map(real))
                }
                Form::Complex => collected(count, places(&self.input, &self.sizes).map(|at| complex_input[first + at])),
                Form::ToReal => {
                    let given = places(&self.input, &half).map(|at| complex_input[first + at]);
                    self.whole(&collected(half.iter().product(), given), &half)
                }
            };
            let mut inner = count;
            let mut outer = 1;
            for fft in &lines {
                let size = fft.len();
                inner /= size;
                if inner == 1 {
                    fft.process_with_scratch(&mut data, &mut scratch);
                } else {
                    let mut line = zeros(size);
                    for (block, at) in (0..outer).flat_map(|block| (0..inner).map(move |at| (block, at))) {
                        let start = block * size * inner + at;
                        line.iter_mut().enumerate().for_each(|(i, value)| *value = data[start + i * inner]);
                        fft.process_with_scratch(&mut line, &mut scratch);
                        line.iter().enumerate().for_each(|(i, value)| data[start + i * inner] = *value);
                    }
                }
                outer *= size;
            }
            result.push(data);
        }
        match self.form {
            Form::Complex => self.put(memory, target, &self.sizes, &result, |data, at| data[at]),
            Form::ToReal => self.put(memory, target, &self.sizes, &result, |data, at| data[at].re),
            Form::FromReal => {
                let (row, short) = (self.sizes[self.sizes.len() - 1], half[half.len() - 1]);
                self.put(memory, target, &half, &result, |data, at| data[at / short * row + at % short])
            }
        }
    }

    /// Elements from the first to the last that are there.
    fn reach(&self, layout: &Layout, sizes: &[usize]) -> usize {
        let last = places(layout, sizes).last().unwrap_or(0);
        (self.batch - 1) * layout.distance + last + 1
    }

    /// Writes results; what lies between them stays.
    fn put<E: Field>(
        &self,
        memory: &dyn Memory,
        target: u64,
        sizes: &[usize],
        result: &[Vec<Complex64>],
        element: impl Fn(&[Complex64], usize) -> E,
    ) -> Result<(), Fault> {
        let reach = self.reach(&self.output, sizes);
        let dense = reach == self.batch * sizes.iter().product::<usize>();
        let single = !self.double;
        let mut out: Vec<E> = if dense { zeros(reach) } else { load_numbers(memory, target, reach, single)? };
        for (batch, data) in result.iter().enumerate() {
            for (index, at) in places(&self.output, sizes).enumerate() {
                out[batch * self.output.distance + at] = element(data, index);
            }
        }
        store_numbers(memory, target, &out, single)
    }

    /// All numbers of a transform whose result is real, from the half that is given.
    fn whole(&self, given: &[Complex64], half: &[usize]) -> Vec<Complex64> {
        let rank = self.sizes.len();
        let (row, short) = (self.sizes[rank - 1], half[rank - 1]);
        let count: usize = self.sizes.iter().product();
        let number = |index: usize| {
            let (line, column) = (index / row, index % row);
            if column < short {
                return given[line * short + column];
            }
            // The number at the mirrored place, conjugated.
            let (mut rest, mut mirrored, mut factor) = (line, 0, 1);
            for &size in self.sizes[..rank - 1].iter().rev() {
                mirrored += (size - rest % size) % size * factor;
                factor *= size;
                rest /= size;
            }
            given[mirrored * short + row - column].conj()
        };
        collected(count, (0..count).map(number))
    }
}

/// Bytes that the plan of a line takes at most: the transform of a large prime is one of a longer line.
fn most_of_plan(size: usize) -> usize {
    let (mut largest, mut rest, mut factor) = (1, size, 2);
    while factor * factor <= rest {
        if rest.is_multiple_of(factor) {
            rest /= factor;
            largest = factor;
        } else {
            factor += 1;
        }
    }
    32 * size + 128 * largest.max(rest)
}

/// The sizes of the complex side: of a real transform, half of the last dimension.
fn halved(sizes: &[usize], form: Form) -> Vec<usize> {
    let mut half = sizes.to_vec();
    if form != Form::Complex
        && let Some(last) = half.last_mut()
    {
        *last = *last / 2 + 1;
    }
    half
}

/// Places of the elements of one batch, in order.
fn places<'a>(layout: &'a Layout, sizes: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
    let count: usize = sizes.iter().product();
    (0..count).map(move |index| {
        let (mut rest, mut place, mut factor) = (index, 0, 1);
        for (size, embed) in sizes.iter().zip(&layout.embed).rev() {
            place += rest % size * factor;
            factor *= embed;
            rest /= size;
        }
        place * layout.step
    })
}

/// A list of C ints, or of 64-bit ones; none for null.
fn list(call: &Call, name: &str, count: usize) -> Result<Option<Vec<usize>>, Problem> {
    let Some(bytes) = call.bytes(name)? else { return Ok(None) };
    let width = bytes.len() / count.max(1);
    let number = |chunk: &[u8]| {
        let value = match *chunk {
            [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
            [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => 0,
        };
        usize::try_from(value).ok().filter(|value| *value > 0).ok_or_else(|| invalid(name))
    };
    if width == 0 || call.arguments.iter().all(|argument| !matches!(argument, Argument::In(_))) {
        return Err(invalid(name));
    }
    bytes.chunks_exact(width).map(number).collect::<Result<_, _>>().map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::tests::{Ones, needed, taken};

    #[test]
    fn plans_take_no_more_than_is_asked_for() {
        for size in [1 << 20, 3 << 18, 1_000_000, 786_433, 1_000_003, 1_048_573, 1_048_583, 2 * 524_287, 1009 * 1013] {
            let bytes = taken(|| FftPlanner::<f64>::new().plan_fft(size, FftDirection::Forward));
            assert!(bytes <= most_of_plan(size) as u64 + (1 << 20), "{size}: {bytes} bytes");
        }
    }

    #[test]
    fn a_transform_without_memory_ends_before_it_takes_it() {
        for (sizes, batch) in [(vec![1 << 20], 1), (vec![1 << 10, 1 << 10], 1), (vec![1 << 18], 5), (vec![262_147], 1)]
        {
            for form in [Form::Complex, Form::FromReal, Form::ToReal] {
                let real = |is_real: bool| if is_real { sizes.clone() } else { halved(&sizes, form) };
                let layout = |embed: Vec<usize>| {
                    let distance = embed.iter().product();
                    Layout { embed, step: 1, distance, standard: true }
                };
                let (input, output) = (layout(real(form == Form::FromReal)), layout(real(form == Form::ToReal)));
                let plan = Plan { sizes: sizes.clone(), form, double: false, batch, input, output };
                let mib = needed(|| plan.transform(&Ones, 0, 0, form == Form::ToReal).expect("there"));
                assert!((20..200).contains(&mib), "{sizes:?} {form:?} takes {mib} MiB");
            }
        }
    }
}
