//! The instructions that compute registers from registers of the same lane.

use super::Kind::{self, *};
use super::floats::{FLOATS, Float, PAIRS};
use std::sync::{Arc, LazyLock};

/// A source of a form.
#[derive(Clone, Copy)]
pub enum From {
    Register(Kind),
    /// A number in the instruction, from zero to this one.
    Upto(u64),
}

/// What a form computes from the bits of its sources: its results.
type Compute = Arc<dyn Fn(&[u64]) -> [u64; 2] + Send + Sync>;

/// An instruction: its text up to the operands, its one or two results, its sources, and what it computes.
pub struct Form {
    pub name: String,
    pub to: Vec<Kind>,
    pub from: Vec<From>,
    pub compute: Compute,
    /// Its sources may be constants.
    pub constants: bool,
}

/// The list of forms while it is made.
#[derive(Default)]
pub struct Forms(Vec<Form>);

impl Forms {
    fn push(&mut self, name: String, to: Vec<Kind>, from: Vec<From>, compute: Compute) {
        let constants = !name.contains("f16") && !name.starts_with("cvt") && !name.starts_with("testp");
        self.0.push(Form { name, to, from, compute, constants });
    }

    /// A form with one result.
    pub fn one(
        &mut self,
        name: impl Into<String>,
        to: Kind,
        from: &[Kind],
        compute: impl Fn(&[u64]) -> u64 + Send + Sync + 'static,
    ) {
        let from = from.iter().map(|kind| From::Register(*kind)).collect();
        self.push(name.into(), vec![to], from, Arc::new(move |x| [compute(x), 0]));
    }

    /// A form with one result, some sources of which are numbers.
    pub fn with_numbers(
        &mut self,
        name: impl Into<String>,
        to: Kind,
        from: &[From],
        compute: impl Fn(&[u64]) -> u64 + Send + Sync + 'static,
    ) {
        self.push(name.into(), vec![to], from.to_vec(), Arc::new(move |x| [compute(x), 0]));
    }

    /// A form with two results.
    pub fn two(
        &mut self,
        name: impl Into<String>,
        to: [Kind; 2],
        from: &[Kind],
        compute: impl Fn(&[u64]) -> [u64; 2] + Send + Sync + 'static,
    ) {
        let from = from.iter().map(|kind| From::Register(*kind)).collect();
        self.push(name.into(), to.to_vec(), from, Arc::new(compute));
    }
}

pub static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    let mut forms = Forms::default();
    super::integers::forms(&mut forms);
    super::bits::forms(&mut forms);
    super::floats::forms(&mut forms);
    super::comparisons::forms(&mut forms);
    super::conversions::forms(&mut forms);
    moves(&mut forms);
    let flushing: Vec<Form> = forms.0.iter().filter_map(flushing).collect();
    forms.0.extend(flushing);
    forms.0
});

/// The same with `.ftz`, where there is such an instruction.
fn flushing(form: &Form) -> Option<Form> {
    let words: Vec<&str> = form.name.split('.').collect();
    let is_type = |word: &str| word.contains(|c: char| c.is_ascii_digit());
    let types: Vec<&str> = words[1..].iter().copied().filter(|word| is_type(word)).collect();
    let (opcode, made, taken) = (words[0], *types.first()?, *types.last()?);
    let flushed = |name: &str| -> Option<Float> {
        let single = opcode == "cvt" || opcode == "slct";
        let names: &[&str] = if single { &["f32"] } else { &["f32", "f16", "f16x2", "f32x2"] };
        FLOATS.into_iter().chain(PAIRS).find(|ty| ty.name == name && names.contains(&name))
    };
    let (sources, result) = match opcode {
        "add" | "sub" | "mul" | "fma" | "div" | "rcp" | "sqrt" | "neg" | "abs" | "min" | "max" if types.len() == 1 => {
            (0..form.from.len(), flushed(made))
        }
        "setp" | "set" => (0..2, None),
        "slct" => (2..3, None),
        "cvt" if types.len() == 2 && !made.ends_with("x2") && !words.contains(&"satfinite") => (0..1, flushed(made)),
        _ => return None,
    };
    let source = flushed(taken);
    source.or(result)?;
    let at = words.iter().position(|word| matches!(*word, "sat" | "NaN" | "xorsign" | "relu") || is_type(word))?;
    let name = [&words[..at], &["ftz"], &words[at..]].concat().join(".");
    let compute = Arc::clone(&form.compute);
    let compute = move |x: &[u64]| {
        let mut x = x.to_vec();
        if let Some(ty) = source {
            x[sources.clone()].iter_mut().for_each(|x| *x = ty.flushed(*x));
        }
        let [first, second] = compute(&x);
        [result.map_or(first, |ty| ty.flushed(first)), second]
    };
    let (to, from, constants) = (form.to.clone(), form.from.clone(), form.constants);
    Some(Form { name, to, from, compute: Arc::new(compute), constants })
}

fn moves(out: &mut Forms) {
    for (ty, kind) in [("b16", H), ("b32", R), ("b64", D), ("f32", F), ("f64", E)] {
        out.one(format!("mov.{ty}"), kind, &[kind], |x| x[0]);
        out.one(format!("selp.{ty}"), kind, &[kind, kind, P], |x| if x[2] == 1 { x[0] } else { x[1] });
        out.one(format!("slct.{ty}.s32"), kind, &[kind, kind, R], |x| if x[2] as i32 >= 0 { x[0] } else { x[1] });
        out.one(format!("slct.{ty}.f32"), kind, &[kind, kind, F], |x| {
            if f32::from_bits(x[2] as u32) >= 0.0 { x[0] } else { x[1] }
        });
    }
    out.one("mov.b32", F, &[R], |x| x[0]);
    out.one("mov.b32", R, &[F], |x| x[0]);
    out.one("mov.b64", E, &[D], |x| x[0]);
    for (name, compute) in [("and", (|a, b| a & b) as fn(u64, u64) -> u64), ("or", |a, b| a | b), ("xor", |a, b| a ^ b)]
    {
        out.one(format!("{name}.pred"), P, &[P, P], move |x| compute(x[0], x[1]));
    }
    out.one("not.pred", P, &[P], |x| x[0] ^ 1);
    out.one("mov.pred", P, &[P], |x| x[0]);
}
