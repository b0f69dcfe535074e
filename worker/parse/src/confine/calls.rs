//! seccomp: which calls into the system can be made at all.

use std::{collections::BTreeMap, io};

use libc::c_long;
use seccompiler::{
    BpfProgram, Error, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, sock_filter,
};

/// All that a parser may ask of the system: to read, write and close what is open, memory, waiting, the time, chance, and to
/// end. A list of what is dangerous would grow with every kernel; one of what is needed does not. What is not on it fails
/// with `EPERM` and ends nothing, so that a library which tries something new and can do without goes on.
const NEEDED: &[c_long] = &[
    // What is open.
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_write,
    libc::SYS_writev,
    // Memory.
    libc::SYS_brk,
    libc::SYS_madvise,
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_munmap,
    // Waiting, and what is asked of the processors.
    libc::SYS_clock_nanosleep,
    libc::SYS_futex,
    libc::SYS_membarrier,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_rseq,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    // The time, and chance.
    libc::SYS_clock_getres,
    libc::SYS_clock_gettime,
    libc::SYS_getrandom,
    libc::SYS_gettimeofday,
    // Itself.
    libc::SYS_getegid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_getrusage,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_sysinfo,
    libc::SYS_uname,
    // Its own signals: an overflow of the stack is told by one.
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    // The end.
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// What no program that reads an image needs: other processes' memory, ways around this very list, and the system's own
/// affairs. Which calls an operator's program does need is not known, so here it is the dangerous ones that are named.
const DANGEROUS: &[c_long] = &[
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_add_key,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_init_module,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_mount,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_pivot_root,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setns,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

type SeccompRules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Leaves to all threads of this process what a parser needs. Whether the kernel does it.
pub(super) fn close() -> io::Result<bool> {
    let filter = compiled(needed()?, FilterAction::Refuse)?;
    stands(seccompiler::apply_filter_all_threads(&filter))
}

/// Takes from this thread, and from what it starts, what is dangerous, and every socket unless it may have the network.
/// Whether the kernel does it.
pub(super) fn refuse_dangerous(network: bool) -> io::Result<bool> {
    let filter = compiled(dangerous(network), FilterAction::Allow)?;
    stands(seccompiler::apply_filter(&filter))
}

/// What is dangerous, and sockets unless it may have the network.
fn dangerous(network: bool) -> SeccompRules {
    let sockets = (!network).then_some(libc::SYS_socket);
    DANGEROUS.iter().copied().chain(sockets).map(|call| (call, Vec::new())).collect()
}

/// What is needed, and of three calls what is harmless.
fn needed() -> io::Result<SeccompRules> {
    let mut rules: SeccompRules = NEEDED.iter().map(|call| (*call, Vec::new())).collect();
    let flags = [libc::F_GETFD, libc::F_GETFL];
    let flags = flags.map(|command| rule(&[(1, u64::from(command.unsigned_abs()))]));
    rules.insert(libc::SYS_fcntl, flags.into_iter().collect::<io::Result<_>>()?);
    // How much it may use: to be read only, since some accounts may raise their limits again.
    rules.insert(libc::SYS_prlimit64, vec![rule(&[(0, 0), (2, 0)])?]);
    // To end itself, as `abort` does.
    rules.insert(libc::SYS_tgkill, vec![rule(&[(0, u64::from(std::process::id()))])?]);
    Ok(rules)
}

/// Calls whose arguments of these numbers have these values.
fn rule(arguments: &[(u8, u64)]) -> io::Result<SeccompRule> {
    let conditions = arguments.iter().map(|(number, value)| {
        // The only long argument here is a pointer, which has to be none.
        let length = if *number == 2 { SeccompCmpArgLen::Qword } else { SeccompCmpArgLen::Dword };
        SeccompCondition::new(*number, length, SeccompCmpOp::Eq, *value)
    });
    let conditions = conditions.collect::<Result<_, _>>().map_err(io::Error::other)?;
    SeccompRule::new(conditions).map_err(io::Error::other)
}

/// What becomes of a call that no rule is about. One that a rule is about gets the other.
#[derive(Clone, Copy)]
enum FilterAction {
    Allow,
    Refuse,
}

fn compiled(rules: SeccompRules, otherwise: FilterAction) -> io::Result<BpfProgram> {
    let (otherwise, by_rule) = match otherwise {
        FilterAction::Allow => (SeccompAction::Allow, refusal()),
        FilterAction::Refuse => (refusal(), SeccompAction::Allow),
    };
    let machine = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let filter = SeccompFilter::new(rules, otherwise, by_rule, machine).map_err(io::Error::other)?;
    let program = BpfProgram::try_from(filter).map_err(io::Error::other)?;
    Ok(if cfg!(target_arch = "x86_64") { refuse_x32_calls(program) } else { program })
}

fn refusal() -> SeccompAction {
    SeccompAction::Errno(libc::EPERM.unsigned_abs())
}

/// From here on a processor of x86-64 has every call a second time, for programs with pointers of 32 bits (x32). The kernel
/// says of them that they are the machine's own, so a list of numbers alone can be gone around by them.
const SECOND_NUMBERS: u32 = 0x4000_0000;

/// Refuses calls by their second numbers, before anything else is asked. Jumps are relative, so that what comes after it is the
/// same as without, the look at the machine included.
fn refuse_x32_calls(program: BpfProgram) -> BpfProgram {
    // As the kernel's linux/filter.h has them; a call's number is the first thing that a filter is shown.
    let load_number = sock_filter { code: 0x20, jt: 0, jf: 0, k: 0 };
    let skip_one_if_below = sock_filter { code: 0x35, jt: 0, jf: 1, k: SECOND_NUMBERS };
    let refuse = sock_filter { code: 0x06, jt: 0, jf: 0, k: u32::from(refusal()) };
    [load_number, skip_one_if_below, refuse].into_iter().chain(program).collect()
}

/// A kernel without seccomp says so in one of these ways, and so does what runs containers.
fn stands(applied: Result<(), Error>) -> io::Result<bool> {
    match applied {
        Ok(()) => Ok(true),
        Err(Error::Prctl(error) | Error::Seccomp(error))
            if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL | libc::EPERM)) =>
        {
            Ok(false)
        }
        Err(error) => Err(io::Error::other(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The machine that the kernel says a call is for, see linux/audit.h.
    #[cfg(target_arch = "x86_64")]
    const MACHINE: u32 = 0xc000_003e;
    #[cfg(target_arch = "aarch64")]
    const MACHINE: u32 = 0xc000_00b7;
    /// Another one: x86 with 32 bits.
    const ANOTHER: u32 = 0x4000_0003;

    /// What the kernel does with a call without arguments, by the few instructions of which filters consist.
    fn answer(program: &[sock_filter], machine: u32, call: u32) -> u32 {
        let (mut at, mut loaded) = (0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let jump = |holds: bool| usize::from(if holds { jt } else { jf });
            match code {
                0x20 => loaded = [call, machine].get(k as usize / 4).copied().unwrap_or(0),
                0x05 => at += k as usize,
                0x15 => at += jump(loaded == k),
                0x25 => at += jump(loaded > k),
                0x35 => at += jump(loaded >= k),
                0x06 => return k,
                other => panic!("{other:#x} is no instruction of a filter without arguments"),
            }
        }
    }

    fn number(call: c_long) -> u32 {
        u32::try_from(call).unwrap()
    }

    #[test]
    fn what_is_dangerous_is_refused_by_each_of_its_numbers() {
        let filter = compiled(dangerous(false), FilterAction::Allow).unwrap();
        for call in DANGEROUS.iter().copied().chain([libc::SYS_socket]).map(number) {
            assert_eq!(answer(&filter, MACHINE, call), u32::from(refusal()), "{call}");
            if cfg!(target_arch = "x86_64") {
                let second = answer(&filter, MACHINE, SECOND_NUMBERS | call);
                assert_eq!(second, u32::from(refusal()), "the second number of {call}");
            }
        }
        let with_network = compiled(dangerous(true), FilterAction::Allow).unwrap();
        for (filter, call) in [(&filter, libc::SYS_openat), (&with_network, libc::SYS_socket)] {
            assert_eq!(answer(filter, MACHINE, number(call)), u32::from(SeccompAction::Allow), "{call}");
        }
    }

    #[test]
    fn a_call_of_another_machine_ends_the_process() {
        let filter = compiled(dangerous(true), FilterAction::Allow).unwrap();
        assert_eq!(answer(&filter, ANOTHER, 1), u32::from(SeccompAction::KillProcess));
    }
}
