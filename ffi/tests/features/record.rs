//! The record stage: commands written to a command buffer and brought up to date.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::NonNull;

use xla_ffi::fake::{Call, CommandBuffer, Host};
use xla_ffi::{ErrorCode, ExecutionStage, KernelArg, KernelCode, Launch, RecordAction};

thread_local! {
    /// Where the operands of this thread's calls lie.
    static DATA: Cell<usize> = const { Cell::new(0x100) };
}

fn at(offset: usize) -> *mut c_void {
    std::ptr::without_provenance_mut(DATA.get() + offset)
}

xla_ffi::handler! {
    pub(crate) fn records(_call: Records<'f>, context) in Record {} => {
        let mut recorder = context.recorder()?;
        assert_eq!(recorder.capacity(), 4);
        let alpha = 2.5_f32.to_le_bytes();
        let args = [KernelArg::Address(at(0)), KernelArg::Value(&alpha)];
        // SAFETY: nothing runs.
        unsafe {
            if recorder.action() == RecordAction::Update {
                let [scale, copy, ..] = *recorder.commands() else { panic!("four commands") };
                recorder.update_launch(scale, &args)?;
                recorder.update_copy(copy, at(8), at(0), 16)?;
                let wrong = recorder.update_copy(scale, at(8), at(0), 16).unwrap_err();
                assert_eq!(wrong.to_string(), "no copy to update");
                return Ok(());
            }
            let mut launch = Launch {
                name: c"scale",
                code: KernelCode::Cubin(&[1, 2, 3]),
                grid: [4, 1, 1],
                block: [128, 2, 1],
                cluster: None,
                shared_memory: 512,
                early: false,
            };
            let empty = recorder.launch(&launch, &[KernelArg::Value(&[])], &[]).unwrap_err();
            assert_eq!(empty.code(), ErrorCode::InvalidArgument);
            let scale = recorder.launch(&launch, &args, &[])?;
            let copy = recorder.copy(at(8), at(0), 8, &[scale])?;
            let both = recorder.join(&[scale, copy])?;
            launch.code = KernelCode::Loaded(NonNull::new(at(0x70)).unwrap());
            (launch.cluster, launch.early) = (Some([2, 1, 1]), true);
            recorder.launch(&launch, &[], &[both])?;
            assert_eq!(recorder.commands()[..2], [scale, copy]);
            launch.code = KernelCode::Ptx(c".version 9.0");
            let full = recorder.launch(&launch, &[], &[]).unwrap_err();
            assert_eq!(full.code(), ErrorCode::ResourceExhausted);
            assert_eq!(full.message(), "the host keeps 4 commands of a call, and has them all");
        }
        Ok(())
    }
}

fn record(buffer: &mut CommandBuffer, update: bool) {
    let (host, call) = (Host::new(), Call::new().stage(ExecutionStage::Record.code()));
    let outcome = buffer.recording(update, || host.execute(Some(records), &call));
    assert_eq!(outcome, Ok(()));
}

#[test]
fn commands_are_written_and_updated() {
    let mut buffer = CommandBuffer::new(4);
    record(&mut buffer, false);
    let written = buffer.commands();
    assert_eq!(
        written,
        [
            "launch scale, cubin 3 bytes, 4x1x1 of 128x2x1 in 0x0x0, 512 shared, early 0 \
             with 0x100 [0, 0, 32, 64]",
            "copy with 8 bytes 0x100 -> 0x108 after 0",
            "join after 0, 1",
            "launch scale, function 0x170, 4x1x1 of 128x2x1 in 2x1x1, 512 shared, early 1 \
             with  after 2",
        ]
    );
    DATA.set(0x200);
    record(&mut buffer, true);
    let updated = buffer.commands();
    assert!(updated[0].ends_with("with 0x200 [0, 0, 32, 64]"), "{}", updated[0]);
    assert_eq!(updated[1], "copy with 16 bytes 0x200 -> 0x208 after 0");
    assert_eq!(updated[2..], written[2..]);
}

xla_ffi::handler! {
    pub(crate) fn captures(_call: Captures<'f>, context) in Record {} => {
        context.recorder()?.capture()
    }
}

#[test]
fn a_handler_may_ask_for_capture_and_needs_a_host_that_records() {
    let (host, call) = (Host::new(), Call::new().stage(ExecutionStage::Record.code()));
    let mut buffer = CommandBuffer::new(0);
    assert!(!buffer.captured());
    assert_eq!(buffer.recording(false, || host.execute(Some(captures), &call)), Ok(()));
    assert!(buffer.captured());
    let refused = host.execute(Some(captures), &call).unwrap_err();
    assert_eq!(refused.code, ErrorCode::Unimplemented as u32);
    assert_eq!(refused.message, "captures: this host records no commands in this stage");
}
