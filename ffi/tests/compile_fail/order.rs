xla_ffi::handler! {
    fn order(_call: Order<'f>, _context) in Execute {
        args { maybe: Option<xla_ffi::AnyBuffer<'f>>, x: xla_ffi::AnyBuffer<'f> }
    } => { Ok(()) }
}

fn main() {
    let _ = order;
}
