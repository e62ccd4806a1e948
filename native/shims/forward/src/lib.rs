//! How a shim hands its calls on to `libsluice_client.so`: one jump for each exported symbol, which leaves registers
//! and stack as the caller filled them. So a shim needs no function's parameters.

/// Exports each symbol as a jump to the client's entry: `forward! { cudaMalloc => sluice_cudaMalloc, … }`. Two symbols
/// may have one entry.
#[macro_export]
macro_rules! forward {
    ($($symbol:ident => $entry:ident,)*) => {
        $(const _: () = {
            unsafe extern "C" {
                fn $entry();
            }

            /// See CUDA's documentation.
            ///
            /// # Safety
            /// As CUDA's documentation says; the arguments go on unread.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $symbol() {
                $crate::jump!($entry)
            }
        };)*
    };
}

/// The jump, through the table that the loader fills.
#[doc(hidden)]
#[cfg(target_arch = "x86_64")]
#[macro_export]
macro_rules! jump {
    ($entry:ident) => {
        ::core::arch::naked_asm!("jmp qword ptr [rip + {}@GOTPCREL]", sym $entry)
    };
}

/// The jump, through the table that the loader fills.
#[doc(hidden)]
#[cfg(target_arch = "aarch64")]
#[macro_export]
macro_rules! jump {
    ($entry:ident) => {
        ::core::arch::naked_asm!("b {}", sym $entry)
    };
}
