// SPDX-License-Identifier: GPL-2.0

//! Text files in debugfs that may stay open across `rmmod`.
//!
//! C header: [`include/linux/debugfs.h`](srctree/include/linux/debugfs.h). The `kernel` crate's own
//! debugfs files have no owner, so the module can go while one is open, and closing that one then
//! runs into freed code. These name their owner: `rmmod` fails with `EWOULDBLOCK` meanwhile.
//!
//! What a file shows is made when it is opened for reading; all reads of that open see the same
//! text. A write is one call with the whole value, at offset 0.

use super::module;
use kernel::{
    bindings,
    error::from_err_ptr,
    fmt,
    prelude::*,
    sync::Arc,
    uaccess::UserSlice, //
};

/// The most bytes that a write may have.
const MAX_INPUT: usize = 4096;

/// Text that grows as it is written. Writing fails only for want of memory.
pub(crate) struct Text(KVVec<u8>);

impl Text {
    /// No text.
    pub(crate) const fn new() -> Self {
        Self(KVVec::new())
    }

    /// Makes it empty.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds formatted text, for `fmt!`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn put(&mut self, args: fmt::Arguments<'_>) -> Result {
        fmt::Write::write_fmt(self, args).map_err(|_| ENOMEM)
    }

    /// Adds all of `other`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn append(&mut self, other: &Text) -> Result {
        Ok(self.0.extend_from_slice(&other.0, GFP_KERNEL)?)
    }
}

impl fmt::Write for Text {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.0
            .extend_from_slice(s.as_bytes(), GFP_KERNEL)
            .map_err(|_| fmt::Error)
    }
}

/// Makes what a file shows.
type Show<C> = fn(&C, &mut Text) -> Result;
/// Takes the bytes of one write.
type Store<C> = fn(&C, &[u8]) -> Result;

/// One file over a context `C`.
pub(crate) struct File<C: 'static> {
    show: Option<Show<C>>,
    store: Option<Store<C>>,
}

impl<C> File<C> {
    /// A file that can only be read.
    pub(crate) const fn read_only(show: Show<C>) -> Self {
        Self {
            show: Some(show),
            store: None,
        }
    }

    /// A file that can only be written.
    pub(crate) const fn write_only(store: Store<C>) -> Self {
        Self {
            show: None,
            store: Some(store),
        }
    }

    /// A file that can be read and written.
    pub(crate) const fn read_write(show: Show<C>, store: Store<C>) -> Self {
        Self {
            show: Some(show),
            store: Some(store),
        }
    }

    fn mode(&self) -> bindings::umode_t {
        match (&self.show, &self.store) {
            (Some(_), None) => 0o400,
            (None, Some(_)) => 0o200,
            _ => 0o600,
        }
    }
}

/// A directory with what is in it. Dropping it removes both, after waiting for handlers that still
/// run: hold nothing that these need.
///
/// # Invariants
///
/// `dentry` is what debugfs gave for the directory, not yet removed. Every file in it points to an
/// element of `files`.
pub(crate) struct Dir {
    dentry: *mut bindings::dentry,
    children: KVec<Dir>,
    files: KVec<KBox<dyn Keep>>,
}

// SAFETY: debugfs calls may come from any thread.
unsafe impl Send for Dir {}
// SAFETY: Nothing is done through a shared reference.
unsafe impl Sync for Dir {}

impl Dir {
    /// A directory at debugfs' root.
    ///
    /// # Errors
    ///
    /// `EEXIST`, `ENOMEM`, or `ENODEV` in a kernel without debugfs.
    pub(crate) fn new(name: &CStr) -> Result<Self> {
        // SAFETY: A null parent is the root.
        unsafe { Self::create(name, core::ptr::null_mut()) }
    }

    /// # Safety
    ///
    /// `parent` is null or a directory in debugfs.
    unsafe fn create(name: &CStr, parent: *mut bindings::dentry) -> Result<Self> {
        // SAFETY: `name` is copied; `parent` by the contract.
        let dentry = unsafe { bindings::debugfs_create_dir(name.as_char_ptr(), parent) };
        Ok(Self {
            // INVARIANT: What debugfs gave; no files yet.
            dentry: from_err_ptr(dentry)?,
            children: KVec::new(),
            files: KVec::new(),
        })
    }

    /// Adds a directory within this one.
    ///
    /// # Errors
    ///
    /// As [`Dir::new`].
    pub(crate) fn subdir(&mut self, name: &CStr) -> Result<&mut Dir> {
        // SAFETY: A directory by the invariant.
        let dir = unsafe { Self::create(name, self.dentry)? };
        self.children.push(dir, GFP_KERNEL)?;
        self.children.last_mut().ok_or(ENOMEM)
    }

    /// Adds `file` under `name`; its functions get `context`.
    ///
    /// # Errors
    ///
    /// `EEXIST` or `ENOMEM`.
    pub(crate) fn add<C: Send + Sync>(
        &mut self,
        name: &CStr,
        file: &'static File<C>,
        context: Arc<C>,
    ) -> Result {
        let bound = KBox::new(Bound { file, context }, GFP_KERNEL)?;
        let data = core::ptr::from_ref::<Bound<C>>(&bound).cast_mut().cast();
        // Stored first, so that the file never points to freed memory.
        self.files.push(bound, GFP_KERNEL)?;
        // SAFETY: The name is copied; `OPS` is static and its functions get a `Bound<C>`, which
        // lives until after the file's removal by the type's invariants and `drop`.
        from_err_ptr(unsafe {
            bindings::debugfs_create_file_full(
                name.as_char_ptr(),
                file.mode(),
                self.dentry,
                data,
                core::ptr::null(),
                &Bound::<C>::OPS,
            )
        })?;
        Ok(())
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        // Innermost first: removal of this one would take the children along.
        self.children.clear();
        // SAFETY: Not yet removed by the invariant. The files go before what they point to.
        unsafe { bindings::debugfs_remove(self.dentry) };
    }
}

/// A [`Bound`] of whatever context.
trait Keep: Send + Sync {}

/// What an inode points to.
struct Bound<C: 'static> {
    file: &'static File<C>,
    context: Arc<C>,
}

impl<C: Send + Sync> Keep for Bound<C> {}

impl<C: Send + Sync + 'static> Bound<C> {
    const OPS: bindings::file_operations = bindings::file_operations {
        owner: module::as_ptr(),
        open: Some(open::<C>),
        read: Some(read),
        write: Some(write::<C>),
        llseek: Some(bindings::default_llseek),
        release: Some(release),
        ..pin_init::zeroed()
    };

    fn snapshot(&self) -> Result<Option<Text>> {
        let Some(show) = self.file.show else {
            return Ok(None);
        };
        let mut text = Text::new();
        show(&self.context, &mut text)?;
        Ok(Some(text))
    }

    fn write(&self, input: &[u8]) -> Result {
        let store = self.file.store.ok_or(EINVAL)?;
        store(&self.context, input)
    }
}

/// One open file.
struct Opened {
    /// The [`Bound`] of its inode.
    bound: *mut c_void,
    /// What it shows; `None` when it is not open for reading or shows nothing.
    text: Option<Text>,
}

/// # Safety
///
/// `inode` points to a [`Bound<C>`] and `file` is being opened.
unsafe extern "C" fn open<C: Send + Sync + 'static>(
    inode: *mut bindings::inode,
    file: *mut bindings::file,
) -> c_int {
    // SAFETY: By the contract.
    let (bound, flags) = unsafe { ((*inode).i_private, (*file).f_flags) };
    let readable = flags & bindings::O_ACCMODE != bindings::O_WRONLY;
    let open = || {
        let text = if readable {
            // SAFETY: By the contract; debugfs keeps the file from removal during this call.
            unsafe { &*bound.cast::<Bound<C>>() }.snapshot()?
        } else {
            None
        };
        Ok::<_, Error>(KBox::new(Opened { bound, text }, GFP_KERNEL)?)
    };
    match open() {
        Ok(opened) => {
            // SAFETY: By the contract; `release` takes the box back.
            unsafe { (*file).private_data = KBox::into_raw(opened).cast() };
            0
        }
        Err(e) => e.to_errno(),
    }
}

/// # Safety
///
/// `file` was opened by [`open`]; `buf` is user memory.
unsafe extern "C" fn read(
    file: *mut bindings::file,
    buf: *mut c_char,
    len: usize,
    pos: *mut bindings::loff_t,
) -> isize {
    // SAFETY: By the contract; nothing changes it between open and release.
    let opened = unsafe { &*(*file).private_data.cast::<Opened>() };
    let Some(text) = &opened.text else {
        return EINVAL.to_errno() as isize;
    };
    // SAFETY: The kernel checks `buf`; the text is valid for its length.
    unsafe {
        bindings::simple_read_from_buffer(
            buf.cast(),
            len,
            pos,
            text.0.as_ptr().cast(),
            text.0.len(),
        )
    }
}

/// # Safety
///
/// `file` was opened by [`open::<C>`]; `buf` is user memory.
unsafe extern "C" fn write<C: Send + Sync + 'static>(
    file: *mut bindings::file,
    buf: *const c_char,
    len: usize,
    pos: *mut bindings::loff_t,
) -> isize {
    // SAFETY: By the contract; debugfs keeps the file, hence the `Bound`, during this call.
    let (bound, pos) = unsafe {
        let opened = &*(*file).private_data.cast::<Opened>();
        (&*opened.bound.cast::<Bound<C>>(), &mut *pos)
    };
    let store = || {
        if *pos != 0 || len > MAX_INPUT {
            return Err(EINVAL);
        }
        let mut input = KVVec::new();
        UserSlice::new(UserPtr::from_ptr(buf.cast_mut().cast()), len)
            .read_all(&mut input, GFP_KERNEL)?;
        bound.write(&input)
    };
    match store() {
        Ok(()) => {
            // CAST: At most `MAX_INPUT`.
            *pos = len as bindings::loff_t;
            len as isize
        }
        Err(e) => e.to_errno() as isize,
    }
}

/// # Safety
///
/// `file` was opened by [`open`] and is used no more.
unsafe extern "C" fn release(_inode: *mut bindings::inode, file: *mut bindings::file) -> c_int {
    // SAFETY: What `open` stored, by the contract for the last time.
    drop(unsafe { KBox::from_raw((*file).private_data.cast::<Opened>()) });
    0
}
