//! The master driven through its doors.

mod cases;
mod doors;
mod histories;
mod life;
mod model;
mod pool;
mod room;
