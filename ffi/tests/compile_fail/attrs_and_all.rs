xla_ffi::handler! {
    fn attrs_and_all(_call: AttrsAndAll<'f>, _context) in Execute {
        attrs { eps: f32 }
        all attrs: xla_ffi::Dictionary<'f>;
    } => { Ok(()) }
}

fn main() {
    let _ = attrs_and_all;
}
