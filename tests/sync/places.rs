//! What is found at each kind of place, and what becomes of it.

mod bucket;
mod feed;
mod folder;
mod moves;
mod page_moves;
mod pages;
mod site;
