struct Plan;

xla_ffi::handler! {
    fn make(_call: Make<'f>, _context) in Instantiate keeping {} => { Ok(Plan) }
}

xla_ffi::handler! {
    fn run(_call: Run<'f>, context) in Execute {} => { context.state::<Plan>().map(drop) }
}

fn main() {
    let _ = (make, run);
}
