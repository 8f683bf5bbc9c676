"""References that judge the library; nothing here imports its likelihoods, priors or samplers."""
