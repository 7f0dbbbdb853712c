//! Properties of the repository as a whole: the order of its modules, its words, pages that are generated, its examples.

mod architecture;
mod examples;
mod public_docs;
mod reference;
mod words;
