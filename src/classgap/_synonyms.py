"""Names that other libraries use for the options of classgap, for error messages; they are no aliases."""

from __future__ import annotations

from collections.abc import Collection

# Our name, what differs where something does, and the names in torch, timm, Hugging Face, Lightning, Keras,
# scikit-learn, Optuna, … The first row that fits the command is used.
SYNONYMS: tuple[tuple[str, str, str], ...] = (
    ("audit", "It is on by default.", "report"),
    ("augment", "", "aa auto_augment augmentation augmentations data_augmentation transform transforms"),
    ("batch_size", "It is the size over all processes.", "per_device_train_batch_size per_gpu_batch_size"),
    ("batch_size", "", "b batch bs train_batch_size"),
    ("budget", "", "max_time time_budget time_limit timeout"),
    ("cells", "", "filter only rows select"),
    ("check_labels", "", "find_label_issues label_errors label_issues noisy_labels"),
    ("clip_grad", "", "clip clip_grad_norm clip_norm clipnorm global_clipnorm grad_clip gradient_clip_val"),
    ("clip_grad", "", "gradient_clipping max_grad_norm"),
    ("compile", "", "torch_compile torchcompile"),
    ("confidence_level", "It is 1 - alpha.", "alpha significance_level"),
    ("confidence_level", "", "ci confidence level"),
    ("config", "", "c cfg config_file"),
    ("correction", "", "adjust method p_adjust"),
    ("costs", "", "cost_matrix"),
    ("data", "For example folder:PATH.", "data_dir data_path train_dir"),
    ("data", "", "d dataset dataset_name"),
    ("device", "", "accelerator cuda gpu gpus use_cuda"),
    ("ema_decay", "", "ema ema_momentum model_ema model_ema_decay"),
    ("epochs", "It counts the epochs of each stage of the method.", "max_epochs max_iter n_epochs num_epochs"),
    ("epochs", "It counts the epochs of each stage of the method.", "num_train_epochs"),
    ("executor", "For example process:4.", "j jobs n_jobs num_workers workers"),
    ("features", "", "embeddings"),
    ("files", "", "data path paths"),
    ("fix", "", "remedy"),
    ("gamma", "", "decay_rate lr_decay lr_decay_rate lr_gamma"),
    ("goal", "", "metric objective optimize_for scoring target"),
    ("images", "", "image_dir image_folder image_path image_root img_dir"),
    ("key", "", "id id_col id_column index match_by on sample_id"),
    ("layer_decay", "", "layerwise_lr_decay llrd"),
    ("lr", "", "base_lr learning_rate learning_rate_init lr0 max_lr"),
    ("max_class_drop", "Its value is in percentage points.", "max_drop threshold tolerance"),
    ("method", "Use the method label-smoothing.", "label_smoothing smoothing"),
    ("method", "Losses are methods.", "algorithm criterion loss loss_fn"),
    (
        "micro_batches",
        "It splits each batch and keeps its size; gradient accumulation elsewhere multiplies it.",
        "accum_iter accum_steps accumulate accumulate_grad_batches grad_accum grad_accum_steps "
        "gradient_accumulation gradient_accumulation_steps n_microbatches num_microbatches update_freq",
    ),
    ("map", "", "embedding_classes plot_classes scatter scatter_classes"),
    ("max_easy_loss", "Its value is in percentage points.", "easy_tolerance max_drop_easy max_easy_drop"),
    (
        "max_group_drop",
        "Its value is GROUP=POINTS, for example easy=0.5.",
        "max_drop_group max_easy_drop max_hard_drop",
    ),
    ("max_overall_loss", "Its value is in percentage points.", "max_accuracy_drop max_accuracy_loss max_overall_drop"),
    ("milestones", "", "decay_epochs decay_milestones lr_step_size lr_steps step_size"),
    ("min_lr", "", "eta_min lr_end lr_min"),
    ("mix", "For example mixup:alpha=0.2 or cutmix:alpha=1.", "cutmix cutmix_alpha mixup mixup_alpha"),
    ("model", "", "arch architecture backbone model_name model_name_or_path net"),
    (
        "monitor",
        "It keeps the best epoch; training does not stop early.",
        "early_stopping early_stopping_patience patience",
    ),
    (
        "monitor",
        "",
        "checkpoint_metric eval_metric load_best_model_at_end metric_for_best_model save_best select select_by",
    ),
    ("name", "", "title"),
    ("n_runs", "", "n_repeats n_seeds num_runs repeats runs runs_per_side seeds"),
    ("n_trials", "", "max_trials n_iter num_samples trials"),
    ("no_audit", "The test samples are evaluated in any case.", "no_report skip_audit skip_report"),
    ("onnx", "", "o out output"),
    ("optimizer", "", "opt optim"),
    ("out", "Run the same command again to resume a run.", "ckpt_path resume resume_from_checkpoint"),
    ("out", "", "checkpoint_dir log_dir logdir o out_dir output output_dir output_file run_dir save_dir"),
    ("overwrite", "", "exist_ok f force overwrite_output_dir"),
    ("precision", "", "amp amp_dtype bf16 dtype fp16 mixed_precision"),
    ("priors", "", "class_prior class_priors prior target_prior target_priors"),
    ("rank_by", "", "baseline groups_from ranking reference"),
    ("results_dir", "", "cache cache_dir o out out_dir output output_dir results store"),
    ("rules", "", "config config_file policy thresholds"),
    ("sampler", "", "balanced_sampling class_balanced sampling weighted_sampler"),
    ("save_every", "Its value is in seconds.", "checkpoint_interval save_interval save_steps"),
    ("schedule", "", "lr_schedule lr_scheduler lr_scheduler_type sched scheduler"),
    ("seed", "", "manual_seed random_seed random_state"),
    ("seeds", "", "n_runs n_seeds num_seeds runs"),
    ("seed", "A run has one seed: run the command once per seed.", "n_seeds num_seeds seeds"),
    ("slices", "", "attributes group_by metadata slice split_by subgroups"),
    ("split", "", "subset"),
    ("split_seed", "", "val_seed"),
    ("max_steps", "It counts the steps of each stage of the method.", "iterations max_iters steps num_steps"),
    ("hub_card", "", "card model_card readme"),
    ("html", "", "o out output output_html report"),
    ("study_dir", "", "search_dir storage study study_name"),
    ("superclasses", "", "coarse_classes coarse_labels"),
    ("swa_lr", "", "swa_lrs"),
    ("swa_start", "", "swa swa_epoch_start"),
    ("targets", "", "ground_truth gt labels target y_true"),
    ("top_k", "", "k topk"),
    ("train_counts", "", "class_counts cls_num_list samples_per_class"),
    ("test", "", "eval eval_file holdout test_data test_file test_set verify"),
    ("unpaired", "", "independent independent_samples"),
    (
        "val_fraction",
        "It is the fraction of each training class that is held out.",
        "val_pct val_ratio val_size val_split valid_fraction validation validation_fraction validation_split",
    ),
    ("valid_labels", "", "accepted_labels label_sets multi_labels"),
    ("warmup_epochs", "Its value is in epochs.", "lr_warmup_epochs warmup warmup_ratio"),
    ("warmup_start_factor", "It is a fraction of the peak learning rate.", "start_factor warmup_lr warmup_lr_init"),
    ("warmup_steps", "", "num_warmup_steps"),
    ("weight_decay", "", "l2 wd"),
    ("wise_ft_alpha", "", "alpha interpolate wise_ft"),
    ("workers", "", "dataloader_num_workers j n_jobs num_workers"),
)


def find_synonym(name: str, allowed: Collection[str]) -> tuple[str, str] | None:
    """Find our name for an option of another library.

    Args:
        name: The unknown name, with dashes or underscores.
        allowed: Names that are allowed, with underscores.

    Returns:
        Our name, and what differs (empty if nothing does); ``None`` if there is no such option.

    >>> find_synonym("weight-factor", ["lr", "epochs"])
    >>> find_synonym("learning-rate", ["lr", "epochs"])
    ('lr', '')
    """
    name = name.replace("-", "_")
    rows = ((ours, note) for ours, note, others in SYNONYMS if ours in allowed and name in others.split())
    return next(rows, None)
