//! cuBLAS.

pub(crate) mod batched;
pub(crate) mod level1;
mod level2;
pub(crate) mod level3;
pub(crate) mod mixed;
mod tiles;

use crate::objects::Handler;
use num_complex::{Complex32, Complex64};

/// The handler of a family for the type that its letters name. All but products of matrices are computed in double
/// precision, so that half of the code serves: what lies in memory is widened and rounded.
macro_rules! typed {
    ($letter:expr, $module:ident::$handler:ident) => {
        match $letter {
            "S" | "D" => Some($module::$handler::<f64> as Handler),
            "C" | "Sc" | "Cs" | "Z" | "Dz" | "Zd" => Some($module::$handler::<Complex64> as Handler),
            _ => None,
        }
    };
}

/// The same for products of matrices, which are computed as they are.
macro_rules! typed_product {
    ($letter:expr, $handler:ident) => {
        match $letter {
            "S" => Some(level3::$handler::<f32> as Handler),
            "D" => Some(level3::$handler::<f64> as Handler),
            "C" => Some(level3::$handler::<Complex32> as Handler),
            "Z" => Some(level3::$handler::<Complex64> as Handler),
            _ => None,
        }
    };
}

fn family(letter: &str, name: &str) -> Option<Handler> {
    let mixed = letter.len() == 2;
    match name {
        "amax" => typed!(letter, level1::amax),
        "amin" => typed!(letter, level1::amin),
        "asum" => typed!(letter, level1::asum),
        "nrm2" => typed!(letter, level1::nrm2),
        "axpy" => typed!(letter, level1::axpy),
        "copy" => typed!(letter, level1::copy),
        "swap" => typed!(letter, level1::swap),
        "dot" | "dotu" => typed!(letter, level1::dot),
        "dotc" => typed!(letter, level1::dotc),
        "scal" if mixed => typed!(letter, level1::scal_real),
        "scal" => typed!(letter, level1::scal),
        "rot" if mixed => typed!(letter, level1::rot_real),
        "rot" => typed!(letter, level1::rot),
        "rotg" => typed!(letter, level1::rotg),
        "rotm" => match letter {
            "S" | "D" => Some(level1::rotm::<f64>),
            _ => None,
        },
        "rotmg" => match letter {
            "S" | "D" => Some(level1::rotmg::<f64>),
            _ => None,
        },
        "gemv" => typed!(letter, level2::gemv),
        "gbmv" => typed!(letter, level2::gbmv),
        "ger" | "geru" => typed!(letter, level2::ger),
        "gerc" => typed!(letter, level2::gerc),
        "symv" | "sbmv" | "spmv" => typed!(letter, level2::symv),
        "hemv" | "hbmv" | "hpmv" => typed!(letter, level2::hemv),
        "syr" | "spr" => typed!(letter, level2::syr),
        "her" | "hpr" => typed!(letter, level2::her),
        "syr2" | "spr2" => typed!(letter, level2::syr2),
        "her2" | "hpr2" => typed!(letter, level2::her2),
        "trmv" | "tbmv" | "tpmv" => typed!(letter, level2::trmv),
        "trsv" | "tbsv" | "tpsv" => typed!(letter, level2::trsv),
        "gemm" | "gemm3m" => typed_product!(letter, gemm),
        "gemmStridedBatched" => typed_product!(letter, gemm_strided),
        "gemmBatched" => typed_product!(letter, gemm_batched),
        "symm" => typed!(letter, level3::symm),
        "hemm" => typed!(letter, level3::hemm),
        "syrk" => typed!(letter, level3::syrk),
        "herk" => typed!(letter, level3::herk),
        "syr2k" => typed!(letter, level3::syr2k),
        "her2k" => typed!(letter, level3::her2k),
        "syrkx" => typed!(letter, level3::syrkx),
        "herkx" => typed!(letter, level3::herkx),
        "trmm" => typed!(letter, level3::trmm),
        "trsm" => typed!(letter, level3::trsm),
        "trsmBatched" => typed!(letter, level3::trsm_batched),
        "geam" => typed!(letter, level3::geam),
        "dgmm" => typed!(letter, level3::dgmm),
        "tpttr" => typed!(letter, level2::tpttr),
        "trttp" => typed!(letter, level2::trttp),
        "getrfBatched" => typed!(letter, batched::getrf),
        "getrsBatched" => typed!(letter, batched::getrs),
        "getriBatched" => typed!(letter, batched::getri),
        "matinvBatched" => typed!(letter, batched::matinv),
        "geqrfBatched" => typed!(letter, batched::geqrf),
        "gelsBatched" => typed!(letter, batched::gels),
        _ => None,
    }
}

/// What computes a function, if it is served.
pub fn find(symbol: &str) -> Option<Handler> {
    let name = symbol.strip_prefix("cublas")?;
    let name = name.strip_suffix("_v2").unwrap_or(name);
    match name {
        "Hgemm" | "SgemmEx" | "CgemmEx" | "GemmEx" => return Some(mixed::gemm),
        "HgemmStridedBatched" | "GemmStridedBatchedEx" => return Some(mixed::gemm_strided),
        "HgemmBatched" | "GemmBatchedEx" => return Some(mixed::gemm_batched),
        "DotEx" => return Some(mixed::dot),
        "DotcEx" => return Some(mixed::dotc),
        "Nrm2Ex" => return Some(mixed::nrm2),
        "AxpyEx" => return Some(mixed::axpy),
        "ScalEx" => return Some(mixed::scal),
        _ => {}
    }
    if let Some(rest) = name.strip_prefix('I')
        && let Some((letter, rest)) = rest.split_at_checked(1)
    {
        return family(&letter.to_uppercase(), rest);
    }
    [1, 2].into_iter().find_map(|length| {
        let (letter, rest) = name.split_at_checked(length)?;
        family(letter, rest)
    })
}
