//! The files of pointers: each has a copy beside it, in case one of the two is damaged.
//!
//! The history of a project is only in its pointer, so without the pointer no rollback is possible.
//! The copy is renamed first, so the pointer itself names the served release, even after a failure
//! between the two.

use std::path::{Path, PathBuf};

use super::layout::{Lock, WriterLock};
use super::{Local, POINTER_BYTES_MAX, read_whole};
use crate::release::ReleaseId;
use crate::site::ProjectId;
use crate::store::durable::{self, FileError, Temp};
use crate::store::pointer::{InvalidPointer, Pointer};
use crate::store::{PromoteError, ReadError};

/// The file extension of the copy of a pointer.
const COPY: &str = "copy";

impl Local {
    /// Reads the pointer of a project, or its copy if the pointer is damaged.
    pub(in crate::store) fn current(
        &self,
        project: &ProjectId,
    ) -> Result<Option<Pointer>, ReadError> {
        let path = self.layout.pointer(project);
        let damaged = match read(&path, project) {
            Err(error @ ReadError::Damaged { .. }) => error,
            read => return read,
        };
        match read(&copy_of(&path), project) {
            Ok(Some(pointer)) => {
                log::error!(
                    target: "store", project:%;
                    "the pointer of {project} is damaged, and its copy is used; `waypost store check --repair` repairs it: {damaged}"
                );
                Ok(Some(pointer))
            }
            _ => Err(damaged),
        }
    }

    /// Replaces a pointer and its copy. The caller holds the lock of the directory and flushes it.
    pub(super) fn write_pointer(
        &self,
        writer: &WriterLock,
        project: &ProjectId,
        pointer: &Pointer,
    ) -> Result<(), FileError> {
        let path = self.layout.pointer(project);
        let bytes = pointer.to_bytes(project);
        for path in [&copy_of(&path), &path] {
            let mut temp = Temp::write(writer.temp(), &bytes)?;
            temp.flush()?;
            temp.rename(path)?;
        }
        Ok(())
    }

    pub(in crate::store) fn restore_pointer(
        &self,
        project: &ProjectId,
        pointer: &Pointer,
    ) -> Result<(), FileError> {
        let writer = self.layout.lock_for_writer()?;
        let shard = self.lock_pointer(project)?;
        self.write_pointer(&writer, project, pointer)?;
        shard.flush()
    }

    pub(in crate::store) fn forget(&self, project: &ProjectId) -> Result<bool, PromoteError> {
        let path = self.layout.pointer(project);
        let shard = self.lock_pointer(project)?;
        // The copy of a removed pointer is never read.
        let was_there = durable::remove(&path)?;
        durable::remove(&copy_of(&path))?;
        shard.flush()?;
        Ok(was_there)
    }

    pub(in crate::store) fn remove_from_history(
        &self,
        project: &ProjectId,
        release: ReleaseId,
    ) -> Result<(), PromoteError> {
        let writer = self.layout.lock_for_writer()?;
        let shard = self.lock_pointer(project)?;
        let Some(mut pointer) = self.current(project)? else {
            return Ok(());
        };
        pointer.history.retain(|earlier| earlier.release != release);
        self.write_pointer(&writer, project, &pointer)?;
        Ok(shard.flush()?)
    }

    /// Locks the directory of a pointer.
    pub(super) fn lock_pointer(&self, project: &ProjectId) -> Result<Lock, FileError> {
        let path = self.layout.pointer(project);
        super::layout::lock_directory(path.parent().unwrap_or(self.path()))
    }
}

/// Returns the path of a pointer's copy.
pub(super) fn copy_of(pointer: &Path) -> PathBuf {
    pointer.with_extension(COPY)
}

/// Reads one file of a pointer.
pub(super) fn read(path: &Path, project: &ProjectId) -> Result<Option<Pointer>, ReadError> {
    let Some(bytes) = read_whole(path, POINTER_BYTES_MAX)? else {
        return Ok(None);
    };
    Pointer::parse(&bytes, project).map(Some).map_err(|error| {
        let what = path.display().to_string();
        let why = error.to_string();
        match error {
            InvalidPointer::Newer(_) => ReadError::Newer { what, why },
            InvalidPointer::Project(_) => ReadError::Damaged { what, why },
            InvalidPointer::Json(json) => ReadError::Damaged {
                what,
                why: json.to_string(),
            },
        }
    })
}
