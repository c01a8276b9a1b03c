//! Reading.

use springtide_core::error::Code;
use springtide_driver::Runtime;

use crate::memory::Slice;
use crate::read::Place;
use crate::{Client, Error};

/// What to read, and where to put it.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// The object's key.
    pub key: &'a [u8],
    /// The first byte wanted.
    pub at: u64,
    /// How many bytes; `None` for all from `at` on.
    pub len: Option<u64>,
    /// Where to put them; longer is allowed.
    pub into: Slice<'a>,
}

impl<R: Runtime> Client<R> {
    /// The value of `key`.
    ///
    /// # Errors
    /// [`Code::OBJECT_NOT_FOUND`], [`Code::REPLICA_IS_NOT_READY`] while it is being written, [`Code::CHECKSUM_MISMATCH`]
    /// when no replica has the right bytes, [`Code::TRANSFER_FAIL`] when none can be reached.
    pub async fn get(&self, key: &[u8]) -> Result<Vec<u8>, Error> {
        self.get_batch(&[key]).await.pop().unwrap_or_else(|| Err(Code::INTERNAL_ERROR.into()))
    }

    /// The values of `keys`, in their order, each with its own result.
    pub async fn get_batch(&self, keys: &[&[u8]]) -> Vec<Result<Vec<u8>, Error>> {
        let mut places: Vec<Place<'_>> = keys.iter().map(|_| Place::Owned(None)).collect();
        let results = self.read(keys, &mut places, self.deadline()).await;
        let owned = results.into_iter().zip(&places).map(|(result, place)| {
            let len = result?;
            let mut value = vec![0; len as usize];
            if let Place::Owned(Some(lease)) = place {
                lease.memory().read(0, &mut value)?;
            }
            Ok(value)
        });
        owned.collect()
    }

    /// Reads the value of `key` to the front of `into`, without a copy; gives back its length.
    ///
    /// # Errors
    /// As [`get`](Self::get), and [`Code::BUFFER_OVERFLOW`] when the value is longer than `into`.
    pub async fn get_into(&self, key: &[u8], into: Slice<'_>) -> Result<u64, Error> {
        let piece = Piece { key, at: 0, len: None, into };
        self.get_pieces(&[piece]).await.pop().unwrap_or_else(|| Err(Code::INTERNAL_ERROR.into()))
    }

    /// Reads many pieces of values, each with its own result: the bytes read (S3A-110…113). A key may stand there more
    /// than once. Whole values and unchecked ones move without a copy; a piece of a checked value is read by whole
    /// blocks, checked and copied.
    pub async fn get_pieces(&self, pieces: &[Piece<'_>]) -> Vec<Result<u64, Error>> {
        let keys: Vec<&[u8]> = pieces.iter().map(|piece| piece.key).collect();
        let places = pieces.iter().map(|&Piece { at, len, into, .. }| Place::Into { at, len, into });
        let mut places: Vec<Place<'_>> = places.collect();
        self.read(&keys, &mut places, self.deadline()).await
    }
}
