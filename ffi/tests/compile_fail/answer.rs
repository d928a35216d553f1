xla_ffi::handler! {
    fn answer(_call: Answer<'f>, _context) in Execute {} => { Ok(42) }
}

fn main() {
    let _ = answer;
}
