//! What a handler asks of its host: the run, the device, user data, options, extensions. (Streams,
//! scratch and the pool: tests/binding.)

use xla_ffi::fake::{Attr, Call, DEVICE, Dictionary, Host, RUN, lend, set_extension, set_options};
use xla_ffi::{ErrorCode, sys};

use crate::run;

struct Lent(i32);
struct NotLent;

xla_ffi::host_type!(Lent, "features.Lent");
xla_ffi::host_type!(NotLent, "features.NotLent");

xla_ffi::handler! {
    pub(crate) fn curious(_call: Curious<'f>, context) in Execute {} => {
        assert_eq!(context.run_id(), Ok(RUN));
        assert_eq!(context.device_ordinal(), Ok(DEVICE));
        assert_eq!(context.user_data::<Lent>()?.0, 5);
        let missing = context.user_data::<NotLent>().err().map(|error| error.code());
        assert_eq!(missing, Some(ErrorCode::NotFound));
        let options = context.custom_options()?.unwrap();
        assert_eq!(options.get::<i64>("level"), Ok(2));
        let version = |wanted| context.extension(128, wanted).map(|it| (it.version(), it.size()));
        assert_eq!(version((0, 1)), Some(((0, 2), 40)));
        assert_eq!((version((0, 3)), version((1, 0))), (None, None), "the version decides");
        assert!(context.extension(129, (0, 0)).is_none());
        Ok(())
    }
}

#[test]
fn run_device_user_data_options_and_extensions() {
    let (host, lent) = (Host::new(), Lent(5));
    let options = Dictionary::new(&[("level", Attr::I64(2))]);
    let id = sys::XLA_FFI_ExtensionId { extension_type: 128, major_version: 0, minor_version: 2 };
    let extension = sys::XLA_FFI_Extension { struct_size: 40, id, next: std::ptr::null() };
    // SAFETY: all of them outlive the call.
    unsafe {
        lend(&host, &lent);
        set_options(options.attrs());
        set_extension(&raw const extension);
    }
    assert_eq!(host.execute(Some(curious), &Call::new()), Ok(()));
    // SAFETY: none.
    unsafe { set_extension(std::ptr::null()) };
}

xla_ffi::handler! {
    pub(crate) fn modest(_call: Modest<'f>, context) in Execute {} => {
        for unknown in [context.run_id().err(), context.device_ordinal().err().clone()] {
            assert_eq!(unknown.map(|error| error.code()), Some(ErrorCode::Unimplemented));
        }
        assert_eq!(context.custom_options().map(|options| options.is_none()), Ok(true));
        assert!(context.extension(128, (0, 0)).is_none());
        assert_eq!(context.thread_pool().threads(), 1);
        Ok(())
    }
}

/// An old host, whose table ends before these functions.
#[test]
fn a_host_that_does_not_tell() {
    let end = std::mem::offset_of!(sys::XLA_FFI_Api, XLA_FFI_ThreadPool_Schedule);
    let host = Host::new().aged(1, end);
    assert_eq!(host.execute(Some(modest), &Call::new()), Ok(()));
}

xla_ffi::handler! {
    pub(crate) fn refusing(call: Refusing<'f>, _context) in Execute { attrs { code: u32 } } => {
        let code = ErrorCode::from_code(call.code);
        Err::<(), _>(xla_ffi::Error::new(code.unwrap(), format!("{code:?} \0 and more")))
    }
}

#[test]
fn every_error_code_and_its_text() {
    for code in ErrorCode::ALL {
        let call = Call::new().attr("code", Attr::U32(code as u32));
        let failure = run(refusing, &call).unwrap_err();
        let text = format!("refusing: Some({code:?}) \\0 and more");
        assert_eq!((failure.code, failure.message), (code as u32, text));
    }
    assert_eq!(ErrorCode::from_code(0), None);
    assert_eq!(ErrorCode::from_code(17), None);
}
