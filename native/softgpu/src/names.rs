//! The names of kernels as people know them.

/// The last identifier of a C++ symbol (Itanium ABI): `matmul` of `_Z6matmulPfS_` and of `_ZN8__main__6matmulB2v1E…`.
/// What is no such symbol stays as it is.
pub fn plain_name(symbol: &str) -> &str {
    let Some(rest) = symbol.strip_prefix("_Z") else { return symbol };
    let rest = rest.strip_prefix('L').unwrap_or(rest);
    let nested = rest.strip_prefix('N');
    let mut rest = nested.unwrap_or(rest).trim_start_matches(['r', 'V', 'K']);
    let mut last = symbol;
    while let Some((name, after)) = identifier(rest) {
        last = name;
        rest = after;
        // Tags follow their name, and are named like one.
        while let Some((_, after)) = rest.strip_prefix('B').and_then(identifier) {
            rest = after;
        }
        if nested.is_none() {
            break;
        }
    }
    last
}

/// A length and a name of it, and what follows.
fn identifier(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let length: usize = text[..digits].parse().ok()?;
    let name = text.get(digits..digits.checked_add(length)?)?;
    (length > 0).then_some((name, &text[digits + length..]))
}

#[cfg(test)]
mod tests {
    use super::plain_name;

    #[test]
    fn a_kernel_is_called_as_its_function() {
        assert_eq!(plain_name("_Z5saxpyifPfS_"), "saxpy");
        assert_eq!(
            plain_name("_ZN8__main__6matmulB2v1B96cw51cXTLSUwv1sCUt9Uw1VEw0NRRQPKzLTg4gaG5IE5ArrayIfLi2E"),
            "matmul"
        );
        assert_eq!(plain_name("_ZN3cub12_GLOBAL__N_118DeviceReduceKernelINS_6PolicyEEEvv"), "DeviceReduceKernel");
        assert_eq!(plain_name("matmul_kernel"), "matmul_kernel");
        for odd in ["_Z", "_Z9short", "_ZN", "_Z0x", "_Z99999999999999999999x", ""] {
            assert_eq!(plain_name(odd), odd);
        }
    }
}
