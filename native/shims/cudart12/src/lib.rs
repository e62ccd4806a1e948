//! `libcudart.so.12`: hands every function of the declaration list on to `libsluice_client.so`. Loading it does
//! nothing.

mod generated;
