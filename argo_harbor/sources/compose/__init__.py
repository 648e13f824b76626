"""What a task's compose file asks for, read strictly: `docker-compose.yaml` of its environment."""
