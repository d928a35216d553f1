xla_ffi::attribute! {
    struct Range { lo: i64, hi: i64, lo: i64 }
}

fn main() {}
