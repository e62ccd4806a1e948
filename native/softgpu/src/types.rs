//! Scalar types of PTX as instructions and variables name them.

/// A scalar type of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    Pred,
    B8,
    B16,
    B32,
    B64,
    /// Only of registers: two of 64 bits, the low one first.
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    F32,
    /// Only in matrix products and conversions to it: 32 bits, of which 19 count.
    Tf32,
    F64,
    /// Only in matrix products, like the next two: eight in a register.
    S4,
    U4,
    /// 32 in a register.
    B1,
}

impl Type {
    /// The type a suffix such as `u32` names.
    pub fn parse(name: &str) -> Option<Type> {
        use Type::*;
        Some(match name {
            "pred" => Pred,
            "b8" => B8,
            "b16" => B16,
            "b32" => B32,
            "b64" => B64,
            "u8" => U8,
            "u16" => U16,
            "u32" => U32,
            "u64" => U64,
            "s8" => S8,
            "s16" => S16,
            "s32" => S32,
            "s64" => S64,
            "f16" => F16,
            "f16x2" => F16x2,
            "bf16" => Bf16,
            "bf16x2" => Bf16x2,
            "f32" => F32,
            "tf32" => Tf32,
            "f64" => F64,
            _ => return None,
        })
    }

    /// Size in bytes (a predicate counts as one).
    pub fn size(self) -> u32 {
        use Type::*;
        match self {
            Pred | B8 | U8 | S8 | S4 | U4 | B1 => 1,
            B16 | U16 | S16 | F16 | Bf16 => 2,
            B32 | U32 | S32 | F32 | Tf32 | F16x2 | Bf16x2 => 4,
            B64 | U64 | S64 | F64 => 8,
            B128 => 16,
        }
    }

    /// The type of a matrix's elements that a suffix names.
    pub fn of_elements(name: &str) -> Option<Type> {
        match name {
            "s4" => Some(Type::S4),
            "u4" => Some(Type::U4),
            "b1" => Some(Type::B1),
            _ => Type::parse(name),
        }
    }

    /// Bits of a matrix's element.
    pub fn element_bits(self) -> u32 {
        match self {
            Type::S4 | Type::U4 => 4,
            Type::B1 => 1,
            _ => 8 * self.size(),
        }
    }

    /// Elements of a matrix that a register holds.
    pub fn elements(self) -> usize {
        (32 / self.element_bits()).max(1) as usize
    }

    /// Whether a register of this type takes 64 bits.
    pub fn wide(self) -> bool {
        self.size() == 8
    }

    /// Whether the type is a signed integer.
    pub fn signed(self) -> bool {
        matches!(self, Type::S8 | Type::S16 | Type::S32 | Type::S64)
    }

    /// Whether the type is floating point.
    pub fn float(self) -> bool {
        matches!(self, Type::F16 | Type::F16x2 | Type::Bf16 | Type::Bf16x2 | Type::F32 | Type::Tf32 | Type::F64)
    }
}
