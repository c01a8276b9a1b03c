//! The master driven through its doors.

mod cases;
mod doors;
mod life;
mod model;
mod pool;
mod room;
