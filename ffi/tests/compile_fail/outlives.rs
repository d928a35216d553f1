use xla_ffi::{Buffer, Context, ThreadPool};

thread_local! {
    static KEPT: std::cell::RefCell<Vec<&'static [f32]>> = Default::default();
}

xla_ffi::handler! {
    fn outlives(call: Outlives<'f>, context) in Execute {
        args { x: Buffer<'f, f32> }
    } => {
        KEPT.with_borrow_mut(|kept| kept.push(call.x.as_slice()));
        let _: ThreadPool<'static> = pool(context);
        Ok(())
    }
}

fn pool<'c>(context: &'c Context<'_>) -> ThreadPool<'c> {
    context.thread_pool()
}

fn main() {
    let _ = outlives;
}
