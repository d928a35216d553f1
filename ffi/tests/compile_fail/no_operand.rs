xla_ffi::handler! {
    fn no_operand(_call: NoOperand<'f>, _context) in Execute {
        args { x: &'f [f32] }
        rets { y: xla_ffi::Buffer<'f, f32> }
        attrs { name: String }
    } => { Ok(()) }
}

fn main() {
    let _ = no_operand;
}
