//! The instructions that compute registers from registers of the same lane.

use super::Kind::{self, *};
use std::sync::LazyLock;

/// A source of a form.
#[derive(Clone, Copy)]
pub enum From {
    Register(Kind),
    /// A number in the instruction, from zero to this one.
    Upto(u64),
}

/// What a form computes from the bits of its sources: its results.
type Compute = Box<dyn Fn(&[u64]) -> [u64; 2] + Send + Sync>;

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
        self.push(name.into(), vec![to], from, Box::new(move |x| [compute(x), 0]));
    }

    /// A form with one result, some sources of which are numbers.
    pub fn with_numbers(
        &mut self,
        name: impl Into<String>,
        to: Kind,
        from: &[From],
        compute: impl Fn(&[u64]) -> u64 + Send + Sync + 'static,
    ) {
        self.push(name.into(), vec![to], from.to_vec(), Box::new(move |x| [compute(x), 0]));
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
        self.push(name.into(), to.to_vec(), from, Box::new(compute));
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
    forms.0
});

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
