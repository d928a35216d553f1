//! Communicators and windows of a host that has collectives.

use std::ffi::c_void;

use xla_ffi::fake::{Call, Host, with_collectives};
use xla_ffi::{Clique, ErrorCode, ExecutionStage, GroupMode, Region};

const GROUPS: &[&[i64]] = &[&[0, 1], &[2, 3]];
const CLIQUE: Clique<'_> =
    Clique { mode: GroupMode::FlattenedId, groups: GROUPS, communication_id: 7 };

/// An address of nothing.
fn at(address: usize) -> *const c_void {
    std::ptr::without_provenance(address)
}

xla_ffi::handler! {
    pub(crate) fn prepares(_call: Prepares<'f>, context) in Prepare {} => {
        let collectives = context.collectives()?;
        collectives.request_communicator(&CLIQUE)?;
        let region = |address, bytes| Region { data: at(address), bytes, flags: 1 };
        // SAFETY: nobody looks there.
        unsafe { collectives.request_windows(&CLIQUE, &[region(0x100, 64), region(0x200, 64)]) }
    }
}

xla_ffi::handler! {
    pub(crate) fn communicates(_call: Communicates<'f>, context) in Execute {} => {
        let collectives = context.collectives()?;
        // SAFETY: the fake host's communicators are strings.
        let clique = unsafe { collectives.communicator(&CLIQUE)?.cast::<String>().as_ref() };
        assert_eq!(clique, "[[0, 1], [2, 3]] in mode 3, number 7");
        let (first, second) = (collectives.window(&CLIQUE, at(0x100))?,
            collectives.window(&CLIQUE, at(0x210))?);
        assert_eq!((first.offset, second.offset), (0, 0x10));
        assert_ne!(first.handle, second.handle);
        let others = Clique { mode: GroupMode::CrossReplica, groups: &[], ..CLIQUE };
        for missing in [
            collectives.communicator(&others).map(drop),
            collectives.window(&others, at(0x100)).map(drop),
            collectives.window(&CLIQUE, at(0x140)).map(drop),
        ] {
            assert_eq!(missing.unwrap_err().code(), ErrorCode::NotFound);
        }
        Ok(())
    }
}

#[test]
fn communicators_and_windows_are_those_asked_for() {
    let host = Host::new();
    with_collectives(|| {
        let prepare = Call::new().stage(ExecutionStage::Prepare.code());
        assert_eq!(host.execute(Some(prepares), &prepare), Ok(()));
        assert_eq!(host.execute(Some(communicates), &Call::new()), Ok(()));
    });
    let refused = host.execute(Some(communicates), &Call::new()).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unimplemented as u32);
    assert_eq!(refused.message, "communicates: this host lends no collectives to this call");
}
