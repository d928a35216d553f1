//! Host callbacks without JAX: a Rust closure and a C function, held by programs of a fake host.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use lapax::exports::{
    lapax_callback_handler, lapax_callback_held, lapax_callback_new, lapax_callback_release,
    lapax_operand,
};
use lapax::{Callback, callback};
use xla_ffi::fake::{Attr, Call, Host, end_program};
use xla_ffi::{Error, ErrorCode, ExecutionStage, Registry};

fn compile(host: &Host, number: i64) -> Result<(), xla_ffi::fake::Failure> {
    let call = Call::new().stage(ExecutionStage::Instantiate.code());
    host.execute(Some(callback::instantiate), &call.attr("callback", Attr::I64(number)))
}

fn run(host: &Host, number: i64, x: &[f32]) -> Result<Vec<f32>, xla_ffi::fake::Failure> {
    let mut y = vec![0.0; x.len()];
    let dims = [i64::try_from(x.len()).unwrap()];
    let call = Call::new().arg(&dims, x).ret(&dims, &mut y);
    let call = call.attr("callback", Attr::I64(number));
    host.execute(Some(callback::execute), &call)?;
    drop(call);
    Ok(y)
}

#[test]
fn a_closure_lives_as_long_as_its_program() {
    let host = Host::new();
    let negate = Callback::new(|args, rets| {
        let (Some(x), Some(y)) = (args[0].as_slice::<f32>(), rets[0].as_mut_slice::<f32>()) else {
            return Err(Error::invalid_argument("expected f32"));
        };
        y.iter_mut().zip(x).for_each(|(y, x)| *y = -x);
        if x.len() > 2 { Err(Error::new(ErrorCode::OutOfRange, "too long")) } else { Ok(()) }
    });
    let number = negate.number();
    compile(&host, number).unwrap();
    drop(negate);
    assert!(Callback::is_held(number));
    assert_eq!(run(&host, number, &[1.0, 2.0]).unwrap(), [-1.0, -2.0]);
    let failed = run(&host, number, &[1.0, 2.0, 3.0]).unwrap_err();
    assert_eq!(
        (failed.code, &*failed.message),
        (ErrorCode::OutOfRange as u32, "lapax_host_callback: too long")
    );
    end_program();
    assert!(!Callback::is_held(number));
    let gone = compile(&host, number).unwrap_err();
    assert_eq!(gone.code, ErrorCode::NotFound as u32);
    assert!(gone.message.contains("it was dropped before the program was compiled"));
    // SAFETY: the host outlives the registry.
    let registry = unsafe { Registry::of_api(host.api()) }.unwrap();
    assert_eq!([(); 2].map(|()| Callback::register(registry)), [Ok(()), Ok(())]);
}

static DROPS: AtomicUsize = AtomicUsize::new(0);

/// y = 2 x; more than one argument is an error.
unsafe extern "C" fn double(
    user: *mut c_void,
    args: *const lapax_operand,
    arg_count: usize,
    rets: *const lapax_operand,
    ret_count: usize,
    error: *mut c_char,
    error_size: usize,
) -> c_int {
    assert_eq!((user.addr(), arg_count, ret_count), (8, 1, 1));
    // SAFETY: one argument and one result, of the test's making.
    unsafe {
        let (arg, ret) = (&*args, &*rets);
        let size = usize::try_from(*arg.dims).unwrap();
        if size > 2 {
            let text = b"too long\0";
            assert!(text.len() <= error_size);
            std::ptr::copy_nonoverlapping(text.as_ptr().cast(), error, text.len());
            return 1;
        }
        for at in 0..size {
            *ret.data.cast::<f32>().add(at) = 2.0 * *arg.data.cast::<f32>().add(at);
        }
    }
    0
}

unsafe extern "C" fn count_drop(user: *mut c_void) {
    assert_eq!(user.addr(), 8);
    DROPS.fetch_add(1, SeqCst);
}

#[test]
fn a_c_function_is_given_back_when_nobody_holds_it() {
    let host = Host::new();
    let user = std::ptr::without_provenance_mut(8);
    // SAFETY: functions that may be called from any thread.
    let number = unsafe { lapax_callback_new(Some(double), user, Some(count_drop)) };
    compile(&host, number).unwrap();
    lapax_callback_release(number);
    lapax_callback_release(number);
    assert_eq!((lapax_callback_held(number), DROPS.load(SeqCst)), (1, 0));
    assert_eq!(run(&host, number, &[1.0, 2.0]).unwrap(), [2.0, 4.0]);
    let failed = run(&host, number, &[0.0; 3]).unwrap_err();
    assert_eq!(failed.message, "lapax_host_callback: the callback failed: too long");
    end_program();
    assert_eq!((lapax_callback_held(number), DROPS.load(SeqCst)), (0, 1));
    // SAFETY: a null function is no function.
    assert_eq!(unsafe { lapax_callback_new(None, user, Some(count_drop)) }, 0);
    assert!([0, 1].iter().all(|stage| !lapax_callback_handler(*stage).is_null()));
}
