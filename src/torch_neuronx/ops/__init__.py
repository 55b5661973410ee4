"""What is known of single operators, as rows: why the chip could not run one natively."""
