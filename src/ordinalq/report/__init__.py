"""Result tables, figures and the page of an experiment."""
