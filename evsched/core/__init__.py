"""The pure scheduler: state, the reducer that folds events into it, and the policies that decide what happens next."""
