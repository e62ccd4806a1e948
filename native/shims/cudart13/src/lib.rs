//! `libcudart.so.13`: hands every function of the declaration list on to `libsluice_client.so`. Loading it does
//! nothing.

mod generated;
