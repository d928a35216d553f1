use xla_ffi::{AnyBufferMut, Rest};

xla_ffi::handler! {
    fn two_rests(_call: TwoRests<'f>, _context) in Execute {
        rets { some: Rest<'f, AnyBufferMut<'f>>, others: Rest<'f, AnyBufferMut<'f>> }
    } => { Ok(()) }
}

fn main() {
    let _ = two_rests;
}
